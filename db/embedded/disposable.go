package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const bootName = "boot"

// discardIfTorn throws the data of a disposable cluster away when the machine
// was restarted under its running server: without fsync its files prove nothing.
// A crash of the server alone tears nothing, the kernel has its writes.
func (c *Cluster) discardIfTorn() error {
	if !c.options.Disposable {
		return nil
	}
	if c.options.Fsync {
		return errors.New("a disposable cluster is one without fsync; fix: set one of both")
	}
	now, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return fmt.Errorf("boot id: %w", err)
	}
	path := filepath.Join(c.dir, bootName)
	then, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("boot id: %w", err)
	}
	if string(then) == string(now) {
		return nil
	}
	if _, unclean := readPidFile(c.data); unclean && len(then) > 0 {
		c.say("throwing %s away: the machine was restarted while it ran without fsync", c.data)
		if err := os.RemoveAll(c.data); err != nil {
			return fmt.Errorf("throwing a torn test cluster away: %w", err)
		}
	}
	return full(c.dir, "noting the boot id", os.WriteFile(path, now, 0o600))
}
