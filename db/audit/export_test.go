package audit

import (
	"context"
	"math/rand/v2"

	"cairn/db"
	"cairn/db/internal/logq"
	"cairn/domain/event"
)

// Ungated lets a swap rename without waiting for the appends under way.
func Ungated(o SwapOptions) SwapOptions {
	o.ungated = true
	return o
}

// NewBuildName is the name of a schema that nobody builds.
func NewBuildName() string { return newBuildName() }

// VerifyShuffled folds the log in a random order that keeps the order of each stream, and compares.
func VerifyShuffled(ctx context.Context, o ReplayOptions, random *rand.Rand) error {
	b, err := startBuild(ctx, o, "")
	if err != nil {
		return err
	}
	defer b.drop()
	var all []event.Record
	read := whole(logq.New(b.reader), ByStream, nil)
	for {
		records, err := read(ctx)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			break
		}
		all = append(all, records...)
	}
	opener, err := b.o.opener(b.reader)
	if err != nil {
		return err
	}
	shuffled, done := shuffle(all, random), false
	f := b.folder(opener, b.writer, 0)
	err = f.run(ctx, func(context.Context) ([]event.Record, error) {
		if done {
			return nil, nil
		}
		done = true
		return shuffled, nil
	})
	if err != nil {
		return err
	}
	tx, err := b.writer.Begin(ctx)
	if err != nil {
		return err
	}
	differences, _, err := compareSchemas(ctx, tx, db.ViewSchema, b.schema)
	if err == nil && len(differences) > 0 {
		err = differences[0]
	}
	return err
}

// shuffle draws from the streams at random; some are held back longer than others.
func shuffle(records []event.Record, random *rand.Rand) []event.Record {
	streams := map[event.ID][]event.Record{}
	var ids []event.ID
	for _, r := range records {
		if streams[r.StreamID] == nil {
			ids = append(ids, r.StreamID)
		}
		streams[r.StreamID] = append(streams[r.StreamID], r)
	}
	var out []event.Record
	for len(ids) > 0 {
		i := random.IntN(len(ids))
		n := 1 + random.IntN(len(streams[ids[i]]))
		out = append(out, streams[ids[i]][:n]...)
		if streams[ids[i]] = streams[ids[i]][n:]; len(streams[ids[i]]) == 0 {
			ids = append(ids[:i], ids[i+1:]...)
		}
	}
	return out
}
