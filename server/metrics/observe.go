package metrics

import (
	"time"

	"cairn/server/gateway"
)

// ModelCall counts a model call that ended. Names of models and outcomes are those of the configuration and the
// gateway: it observes no call for a name that it does not know.
func (m *Meter) ModelCall(c gateway.Call) {
	m.calls.WithLabelValues(c.Model, c.Outcome).Inc()
	m.callTook.WithLabelValues(c.Model).Observe(c.Duration.Seconds())
	if c.FirstToken != nil {
		m.firstToken.WithLabelValues(c.Model).Observe(c.FirstToken.Seconds())
	}
	m.count(c.Model, "input", c.InputTokens)
	m.count(c.Model, "output", c.OutputTokens)
	if c.Outcome == "ok" && (c.InputTokens == nil || c.OutputTokens == nil) {
		m.tokenUnknown.WithLabelValues(c.Model).Inc()
	}
}

// count adds what a provider reported; a number below zero is none.
func (m *Meter) count(model, direction string, tokens *int64) {
	if tokens != nil && *tokens >= 0 {
		m.tokens.WithLabelValues(model, direction).Add(float64(*tokens))
	}
}

// Lag takes the age of the newest event of a batch that was handed to the sockets.
func (m *Meter) Lag(age time.Duration) { m.lag.Observe(max(0, age.Seconds())) }

// Denial counts a refusal. Rules are codes of the interface.
func (m *Meter) Denial(known bool, rule string) {
	caller := "anonymous"
	if known {
		caller = "account"
	}
	m.denials.WithLabelValues(caller, rule).Inc()
}
