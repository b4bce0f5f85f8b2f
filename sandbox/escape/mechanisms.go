package escape

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// mechanisms are read, not tried: each tells whether one control is in force
// for this process.
func mechanisms() []Probe {
	at := func(name, tries string, try func() error) Probe {
		return Probe{Name: name, Group: "mechanisms", Tries: tries, Try: try}
	}
	return []Probe{
		at("same_user_ids", "bear the ids of the host", func() error {
			return contains("/proc/self/uid_map", "4294967295")
		}),
		at("host_name", "see the name of the host", func() error {
			name, err := os.Hostname()
			if err == nil && name != env("HOSTNAME") {
				return unix.ENOENT
			}
			return err
		}),
		at("group_names", "see the names of control groups of the host", func() error { return contains("/proc/self/cgroup", env("GROUP")) }),
		at("has_route", "have a route to anywhere", func() error {
			b, err := os.ReadFile("/proc/net/route")
			if err == nil && strings.Count(strings.TrimSpace(string(b)), "\n") == 0 {
				return unix.ENETUNREACH
			}
			return err
		}),
		at("may_gain_privileges", "run without no_new_privs", func() error {
			n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
			if err == nil && n == 1 {
				return unix.EPERM
			}
			return err
		}),
		at("bounding_set", "have a capability in the bounding set", func() error {
			n, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_CHOWN, 0, 0, 0)
			if err == nil && n == 0 {
				return unix.EPERM
			}
			return err
		}),
		at("landlock_mark", "read a file that only Landlock keeps away", func() error {
			name := env("LANDLOCK")
			if name == "" {
				name = "/run/landlock"
			}
			return readable(name)
		}),
	}
}

func contains(file, text string) error {
	b, err := os.ReadFile(file)
	if err == nil && !strings.Contains(string(b), text) {
		return unix.ENOENT
	}
	return err
}
