package sandbox

import (
	"encoding/json"
	"testing"
)

func TestSmoke(t *testing.T) {
	i := prepare(t, nil)
	b, _ := json.MarshalIndent(i.Report(), "", " ")
	t.Logf("%s", b)
	t.Log(shell(t, i, "id; pwd; env; ls -la / /workspace /etc /dev; cat /proc/self/mountinfo; ps ax; cat /proc/self/status; ls -l /proc/self/fd; cat /proc/self/cgroup"))
}
