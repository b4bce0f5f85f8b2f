package db

import (
	"testing"

	"cairn/domain/event"
)

// TestStatesFoldedBeforeAnErasureDoNotComeBack: a fold that was under way when the cache was cleared holds
// text that was opened before.
func TestStatesFoldedBeforeAnErasureDoNotComeBack(t *testing.T) {
	s := newStates(4)
	before := s.now()
	s.put(event.ID{1}, state{version: 1}, before)
	s.clear()
	s.put(event.ID{1}, state{version: 2}, before)
	if _, ok := s.get(event.ID{1}); ok {
		t.Error("a state of before the erasure is kept")
	}
	s.put(event.ID{1}, state{version: 3}, s.now())
	if _, ok := s.get(event.ID{1}); !ok {
		t.Error("a state of after the erasure is not kept")
	}
}
