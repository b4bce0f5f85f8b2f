package audit

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"cairn/domain/event"
)

// EnforceErasures destroys the keys of subjects that the log says are erased and answers how many still had
// one. That is so only after the vault was restored from a backup of before the erasure; the commands do not
// help then, since for the log the subject is erased already.
func EnforceErasures(ctx context.Context, url string, registry *event.Registry) (destroyed int64, err error) {
	conn, err := connect(ctx, url, "")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, hangUp(conn)) }()
	tag, err := conn.Exec(ctx, `
		UPDATE vault.subject_key SET wrapped = NULL, destroyed_at = now()
		WHERE wrapped IS NOT NULL AND subject IN (SELECT stream_id FROM log.event WHERE kind = ANY($1))`, eraserKinds(registry))
	if err != nil {
		return 0, fmt.Errorf("keys of erased subjects: %w", err)
	}
	return tag.RowsAffected(), nil
}

func eraserKinds(registry *event.Registry) []string {
	var kinds []string
	for _, aggregate := range registry.Aggregates() {
		for _, definition := range aggregate.Events {
			if definition.Type.Implements(reflect.TypeFor[event.Eraser]()) {
				kinds = append(kinds, definition.Kind)
			}
		}
	}
	return kinds
}
