package metrics

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"cairn/db"
	"cairn/server/live"
)

// collector reads what others count.
type collector struct {
	Options
	asker *asker
}

func newCollector(o Options) *collector { return &collector{Options: o, asker: &asker{db: o.DB}} }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("cairn_"+name, help, labels, nil)
}

var (
	build     = desc("build_info", "Always 1; the label has the version.", "version")
	reachable = desc("database_reachable", "1 when the database answered this scrape, or the last one within 5 s; else 0, and what it would have said is absent.")

	appends   = desc("appends_total", "Flushes of events that this process appended to the log.")
	events    = desc("appended_events_total", "Events that this process appended to the log.")
	conflicts = desc("conflicts_total", "Flushes that were refused because another writer was first; most are decided again.")
	failures  = desc("append_failures_total", "Flushes that the database did not take although nothing was wrong with them.")
	appending = desc("append_duration_seconds", "Time to append a flush, from its connection to its commit.")
	sequenced = desc("sequenced_events_total", "Events that this process gave positions, also those of other processes.")
	sequence  = desc("sequence_batch_duration_seconds", "Time to give one batch of events their positions.")
	waiting   = desc("unsequenced_age_seconds", "How long the oldest committed event has waited for its position; absent when none waits.")
	listening = desc("listen_alive", "1 when notifications of the database arrive; else readers poll every 250 ms.")

	runs = desc("runs", "Runs that have not ended, by state; of the whole database, at most 5 s old.", "state")
	jobs = desc("queue_jobs", "Jobs that are not finished, by queue and state; of the whole database, at most 5 s old.", "queue", "state")

	sockets   = desc("sockets", "WebSockets that are open, by state.", "state")
	opened    = desc("sockets_opened_total", "WebSockets that were authenticated.")
	refused   = desc("sockets_refused_total", "WebSockets that were not authenticated.")
	closed    = desc("sockets_closed_total", "WebSockets that ended, by close code.", "code")
	topics    = desc("topics", "Topics that at least one WebSocket watches.")
	position  = desc("tailer_position", "Position of the log up to which events were handed to the WebSockets.")
	frames    = desc("socket_events_total", "Event frames written to WebSockets, by where they came from.", "source")
	messages  = desc("socket_messages_total", "Messages written to WebSockets.")
	bytes     = desc("socket_bytes_total", "Bytes in the messages written to WebSockets.")
	overflows = desc("socket_overflows_total", "Queues of slow WebSockets that were full and dropped.")
	resyncs   = desc("socket_resyncs_total", "Topics whose client was told to read again.")
	deltas    = desc("socket_deltas_total", "Batches of words for WebSockets, by what became of them.", "outcome")
)

// Describe implements prometheus.Collector: which metrics there are depends on what is known.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	s := sink(to)
	s.gauge(build, 1, c.Version)
	s.log(c.DB.Stats())
	s.gauge(listening, truth(c.DB.ListenAlive()))
	s.live(c.Live())
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	err := c.ask(ctx, s)
	if err != nil {
		c.Log.WarnContext(ctx, "metrics without the database's", slog.Any("error", err))
	}
	s.gauge(reachable, truth(err == nil))
}

// ask sends what only the database knows.
func (c *collector) ask(ctx context.Context, s sink) error {
	age, err := c.DB.UnsequencedAge(ctx)
	if err != nil {
		return err
	}
	n, err := c.asker.counts(ctx)
	if err != nil {
		return err
	}
	if age != nil {
		s.gauge(waiting, age.Seconds())
	}
	for state, count := range n.runs {
		s.gauge(runs, float64(count), state)
	}
	for of, count := range n.jobs {
		s.gauge(jobs, float64(count), of.queue, of.state)
	}
	return nil
}

// sink is where metrics go.
type sink chan<- prometheus.Metric

func (s sink) gauge(d *prometheus.Desc, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (s sink) count(d *prometheus.Desc, value int64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
}

func (s sink) durations(d *prometheus.Desc, h db.Durations) {
	var below uint64
	buckets := map[float64]uint64{}
	for i, bound := range h.Bounds {
		below += uint64(h.Counts[i])
		buckets[bound.Seconds()] = below
	}
	all := below + uint64(h.Counts[len(h.Bounds)])
	s <- prometheus.MustNewConstHistogram(d, all, h.Sum.Seconds(), buckets)
}

func (s sink) log(n db.Stats) {
	s.count(appends, n.Appends)
	s.count(events, n.Events)
	s.count(conflicts, n.Conflicts)
	s.count(failures, n.Failures)
	s.durations(appending, n.Append)
	s.count(sequenced, n.Sequenced)
	s.durations(sequence, n.Sequence)
}

func (s sink) live(n live.Stats) {
	s.gauge(sockets, float64(n.Sockets), "open")
	s.gauge(sockets, float64(n.Opening), "opening")
	s.count(opened, n.Opened)
	s.count(refused, n.Refused)
	for code, count := range n.Closed {
		s.count(closed, count, strconv.Itoa(int(code)))
	}
	s.gauge(topics, float64(n.Topics))
	s.gauge(position, float64(n.Position))
	s.count(frames, n.Events, "tail")
	s.count(frames, n.Replayed, "replay")
	s.count(messages, n.Messages)
	s.count(bytes, n.Bytes)
	s.count(overflows, n.Overflow)
	s.count(resyncs, n.Resyncs)
	s.count(deltas, n.Deltas, "queued")
	s.count(deltas, n.DeltasDropped, "dropped")
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
