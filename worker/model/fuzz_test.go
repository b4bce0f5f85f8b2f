package model

import "testing"

// FuzzAssembly: whatever a provider sends, ids are there and differ, and valid
// arguments are an object.
func FuzzAssembly(f *testing.F) {
	f.Add([]byte(calls(`{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}},{"function":{"name":"y"}}`)), []byte(delta(`{"content":"x"}`)))
	f.Add([]byte(calls(`{"index":5,"id":"call_1_1","function":{"arguments":{}}}`)), []byte(calls(`{"index":-1,"function":{"name":""}}`)))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		a := newAssembly(1, nil)
		for _, data := range [][]byte{one, two, one} {
			if a.event(data) != nil {
				return
			}
		}
		seen := map[string]bool{}
		for _, c := range a.complete().Calls {
			if c.ID == "" || seen[c.ID] || !c.Invalid && !isObject(c.Arguments) {
				t.Fatalf("%+v", c)
			}
			seen[c.ID] = true
		}
	})
}
