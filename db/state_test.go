package db

import (
	"testing"

	"cairn/domain/event"
)

// TestStatesFoldedBeforeAnErasureDoNotComeBack: a fold that was under way when the cache was cleared holds
// text that was opened before.
func TestStatesFoldedBeforeAnErasureDoNotComeBack(t *testing.T) {
	s := newStates(4, 1<<20)
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

// The cache is bounded by what it holds as well: a state may keep a message of 1 MiB.
func TestStatesAreBoundedByTheirText(t *testing.T) {
	s := newStates(100, 1000)
	for i := range byte(50) {
		s.put(event.ID{i}, state{version: 1, weight: 300}, s.now())
	}
	s.put(event.ID{49}, state{version: 2, weight: 400}, s.now())
	if entry, ok := s.get(event.ID{49}); !ok || entry.version != 2 || len(s.entries) > 3 || s.weight > 1000 {
		t.Errorf("%d states of %d bytes, the newest: %v", len(s.entries), s.weight, entry)
	}
	s.put(event.ID{49}, state{version: 3, weight: 1001}, s.now())
	if entry, ok := s.get(event.ID{49}); ok {
		t.Errorf("a state too large is kept, or an older one of it: %v", entry)
	}
	for id := range s.entries {
		s.drop(id)
	}
	if s.weight != 0 {
		t.Errorf("an empty cache weighs %d", s.weight)
	}
}
