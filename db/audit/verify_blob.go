package audit

import (
	"bytes"
	"encoding/json"
	"fmt"

	"cairn/domain/event"
	"cairn/domain/fault"
)

// checkBlobs looks for the blobs that an event's sealed fields name. Those of an erased subject may be gone.
// It needs no registry, so that events of later versions are checked too.
func (v *verification) checkBlobs(e *event.Record) error {
	if v.Blobs == nil || !bytes.Contains(e.Data, []byte(`"blob"`)) {
		return nil
	}
	var data any
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return broken("data", "JSON", err).of(e)
	}
	for _, box := range blobBoxes(data, nil) {
		if v.erased[box.Key] {
			continue
		}
		_, err := v.Blobs.Get(box.Blob)
		if fault.HasCode(err, "blob_missing") || fault.HasCode(err, "blob_altered") {
			return broken("a sealed field names a blob", box.Blob, err).of(e)
		}
		if err != nil {
			return fmt.Errorf("event %s: %w", e.ID, err)
		}
		*v.report.Blobs++
	}
	return nil
}

// blobBoxes collects the sealed fields in a JSON value whose ciphertext is a blob.
func blobBoxes(value any, found []event.Box) []event.Box {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			found = blobBoxes(item, found)
		}
	case map[string]any:
		key, isKey := value["key"].(string)
		blob, isBlob := value["blob"].(string)
		if id, err := event.ParseID(key); isKey && isBlob && err == nil {
			return append(found, event.Box{Key: id, Blob: blob})
		}
		for _, item := range value {
			found = blobBoxes(item, found)
		}
	}
	return found
}
