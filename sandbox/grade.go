package sandbox

import (
	"fmt"
	"slices"
)

// Grade says in one word how much holds an agent, from A (best) to F. It is
// computed from what the worker observed, never from what was asked for.
type Grade string

// The grades that this package gives. A and B belong to virtual machines.
const (
	GradeC      Grade = "C"  // every control
	GradeCMinus Grade = "C-" // no range of uids, or no control groups: limits of each process instead
	GradeD      Grade = "D"  // one kernel, one set of namespaces: Landlock, seccomp, no new privileges, limits
	GradeF      Grade = "F"  // nothing worth a name
)

var order = []Grade{"A", "B", GradeC, GradeCMinus, GradeD, GradeF}

// groundwork is what grade D consists of.
var groundwork = []Control{Rlimits, NoNewPrivs, CapabilitiesDropped, Landlock, Seccomp}

// ParseGrade reads the grade that an operator requires.
func ParseGrade(s string) (Grade, error) {
	switch g := Grade(s); g {
	case GradeC, GradeCMinus, GradeD, GradeF:
		return g, nil
	case "A", "B":
		return "", fmt.Errorf("grade %s needs a virtual machine or gVisor, which this version cannot start: want C, C-, D or F", s)
	}
	return "", fmt.Errorf("grade %q is unknown: want C, C-, D or F", s)
}

// AtLeast compares two grades.
func (g Grade) AtLeast(least Grade) bool {
	return slices.Index(order, g) >= 0 && slices.Index(order, g) <= slices.Index(order, least)
}

// needs lists the controls of a grade.
func (g Grade) needs() []Control {
	switch g {
	case GradeC:
		return AllControls()
	case GradeCMinus:
		return slices.DeleteFunc(AllControls(), func(c Control) bool { return c == UIDRange || c == CgroupKill || c == CgroupLimits })
	case GradeD:
		return groundwork
	}
	return nil
}

// grade gives the best whose controls were all observed. Only below C may one
// of them be unknown for want of a right of the worker, and that is the root of
// the mount namespace alone.
func (r *Report) grade() Grade {
	for _, g := range []Grade{GradeC, GradeCMinus, GradeD} {
		if !slices.ContainsFunc(g.needs(), func(c Control) bool { return !r.seen(c, g) }) {
			return g
		}
	}
	return GradeF
}

func (r *Report) seen(c Control, g Grade) bool {
	k := r.Control(c)
	if k.Observed == nil {
		return g != GradeC && c == PivotRoot && k.Installed != nil && *k.Installed
	}
	return *k.Observed
}
