package layer

import (
	"testing"
)

// TestLowerMap: every map is one-to-one in both directions, covers the owner,
// and gives him the agent's number.
func TestLowerMap(t *testing.T) {
	const agent, base = 1000, 1_000_000_000
	for _, owner := range []int{0, 1, 999, 1000, 1001, 33, 65534, 65535, 65536, 70000, 4_000_000} {
		disk, inside := map[int]int{}, map[int]bool{}
		for _, m := range LowerMap(owner, agent, base) {
			for n := range m.Size {
				d, i := m.ContainerID+n, m.HostID+n-base
				if _, twice := disk[d]; twice || inside[i] || i < 0 || i >= RangeSize {
					t.Fatalf("owner %d: %d -> %d is not one-to-one", owner, d, i)
				}
				disk[d], inside[i] = i, true
			}
		}
		if disk[owner] != agent {
			t.Errorf("owner %d appears as %d", owner, disk[owner])
		}
		if _, ok := disk[0]; !ok {
			t.Errorf("owner %d: root of the disk is not mapped", owner)
		}
	}
}
