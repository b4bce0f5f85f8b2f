package workspace

import (
	"maps"

	"cairn/domain/egress"
	"cairn/domain/run"
	"cairn/sandbox"
	sandboxegress "cairn/sandbox/egress"
)

// network works out what a run may reach: what its agent asks for, inside of what the space allowed when it was
// queued, below the ceiling of this worker. A conflict refuses the run; nothing is left out in silence.
func (c Config) network(state run.State) (*sandbox.Network, error) {
	ceiling := c.EgressCeiling
	if ceiling == "" {
		ceiling = sandboxegress.None
	}
	policy, err := sandboxegress.Effective(policy(state.Egress), policy(state.SpaceEgress), ceiling)
	if err != nil {
		return nil, refuse("%v", err)
	}
	return &sandbox.Network{Policy: policy, OnDecided: c.OnEgress}, nil
}

// policy says the same to the sandbox, which knows nothing of ours.
func policy(p *egress.Policy) *sandboxegress.Policy {
	if p == nil {
		return nil
	}
	same := &sandboxegress.Policy{Tier: sandboxegress.Tier(p.Tier)}
	for _, r := range p.Rules {
		same.Rules = append(same.Rules, sandboxegress.Rule(r))
	}
	return same
}

// offline are variables for programs that would wait for a network in vain.
func (c Config) offline(env map[string]string, n *sandbox.Network) {
	if n.Policy.Tier == sandboxegress.None {
		maps.Copy(env, c.Offline)
	}
}
