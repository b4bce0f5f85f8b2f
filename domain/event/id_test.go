package event

import (
	"encoding/json"
	"testing"
)

func TestParseID(t *testing.T) {
	const text = "0198a000-0000-7000-8000-0000000000ff"
	id, err := ParseID(text)
	if err != nil || id.String() != text {
		t.Fatalf("got %s, %v", id, err)
	}
	upper, err := ParseID("0198A000-0000-7000-8000-0000000000FF")
	if err != nil || upper != id {
		t.Fatalf("upper case: got %s, %v", upper, err)
	}
	for _, bad := range []string{
		"", "0198a000", text + "0", text[:35], "0198a0000-000-7000-8000-0000000000ff",
		"0198a000-0000-7000-8000-0000000000fg", "{198a000-0000-7000-8000-0000000000f}", "0198a000_0000_7000_8000_0000000000ff",
	} {
		if got, err := ParseID(bad); err == nil || !got.IsZero() && got != (ID{}) {
			t.Errorf("%q: got %s, %v", bad, got, err)
		}
	}
}

// The vector is the one of RFC 9562, appendix A.4: "www.example.com" in the name space of domain names.
func TestNameID(t *testing.T) {
	dns, err := ParseID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
	if err != nil {
		t.Fatal(err)
	}
	if got := NameID(dns, []byte("www.example.com")).String(); got != "2ed6657d-e927-568b-95e1-2665a8aea6a2" {
		t.Errorf("got %s", got)
	}
}

func TestIDInJSON(t *testing.T) {
	id := NameID(ID{}, []byte("x"))
	in := map[ID]ID{id: id}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out map[ID]ID
	if err := json.Unmarshal(data, &out); err != nil || out[id] != id {
		t.Fatalf("%s: %v, %v", data, out, err)
	}
	if err := json.Unmarshal([]byte(`"no"`), &id); err == nil {
		t.Error("a bad id was accepted")
	}
	if id.Compare(ID{}) <= 0 || (ID{}).Compare(id) >= 0 || id.Compare(id) != 0 {
		t.Error("ids do not compare by their bytes")
	}
}

func TestActors(t *testing.T) {
	id := NameID(ID{}, []byte("x"))
	if got, ok := ActorAccount(AccountActor(id)); !ok || got != id {
		t.Errorf("account: %s, %v", got, ok)
	}
	if name, ok := ActorWorker(WorkerActor("w1")); !ok || name != "w1" {
		t.Errorf("worker: %q, %v", name, ok)
	}
	for _, actor := range []string{"", System, "account/", "account/x", "account/" + ID{}.String(), "worker/", "worker"} {
		if _, ok := ActorAccount(actor); ok {
			t.Errorf("%q is no account", actor)
		}
		if _, ok := ActorWorker(actor); ok {
			t.Errorf("%q is no worker", actor)
		}
	}
}
