package fault

import (
	"errors"
	"fmt"
	"testing"
)

func TestKindsSurviveWrapping(t *testing.T) {
	err := fmt.Errorf("outer: %w", New(Conflict, "run_ended", "the run has ended as %s", "failed"))
	if KindOf(err) != Conflict || !Is(err, Conflict) || Is(err, Denied) || !HasCode(err, "run_ended") || HasCode(err, "other") {
		t.Errorf("kind %q of %v", KindOf(err), err)
	}
	if err.Error() != "outer: the run has ended as failed" {
		t.Errorf("message %q", err)
	}
	for _, plain := range []error{nil, errors.New("x")} {
		if KindOf(plain) != "" || HasCode(plain, "") || Is(plain, Invalid) {
			t.Errorf("%v is no fault", plain)
		}
	}
}

func TestFieldNamesTheField(t *testing.T) {
	f := Field("calls[1].id", "%q is taken", "c1")
	if f.Kind != Invalid || f.Code != "invalid_field" || f.Error() != `calls[1].id: "c1" is taken` {
		t.Errorf("%+v: %v", f, f)
	}
}
