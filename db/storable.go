package db

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"cairn/domain/event"
	"cairn/domain/fault"
)

var (
	sealedType = reflect.TypeFor[event.Sealed]()
	rawType    = reflect.TypeFor[json.RawMessage]()
)

// storable refuses an event with text that could not come back as it was given: bytes that are not UTF-8
// (JSON would replace them silently), NUL and lone surrogates (PostgreSQL refuses them in projections). The
// decisions check their input; this is the log's own rule, for whatever they overlook.
func storable(e event.Event) error { return storableValue(reflect.ValueOf(e), e.Kind()) }

func storableValue(v reflect.Value, path string) error {
	switch {
	case v.Type() == sealedType:
		return storableText(v.Interface().(event.Sealed).Text(), path)
	case v.Type() == rawType:
		return storableJSON(v.Bytes(), path)
	case v.Kind() == reflect.String:
		return storableText(v.String(), path)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				if err := storableValue(v.Field(i), path+"."+f.Name); err != nil {
					return err
				}
			}
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		for i := range v.Len() {
			if err := storableValue(v.Index(i), path+"["+strconv.Itoa(i)+"]"); err != nil {
				return err
			}
		}
	case v.Kind() == reflect.Map:
		for key, value := range v.Seq2() {
			if err := storableValue(key, path); err != nil {
				return err
			}
			if err := storableValue(value, path); err != nil {
				return err
			}
		}
	case (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && !v.IsNil():
		return storableValue(v.Elem(), path)
	}
	return nil
}

func storableText(text, path string) error {
	if !utf8.ValidString(text) {
		return notStorable(path, "text that is not valid UTF-8")
	}
	if at := strings.IndexByte(text, 0); at >= 0 {
		return notStorable(path, "NUL at byte "+strconv.Itoa(at))
	}
	return nil
}

// storableJSON looks at the escapes of JSON text, which valid UTF-8 alone says nothing about.
func storableJSON(raw []byte, path string) error {
	if err := storableText(string(raw), path); err != nil {
		return err
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // the character after a backslash never begins an escape itself
		switch unit := escaped(raw, i-1); {
		case unit == 0:
			return notStorable(path, "NUL as an escape")
		case unit >= 0xDC00 && unit < 0xE000:
			return notStorable(path, "a lone surrogate")
		case unit >= 0xD800 && unit < 0xDC00:
			if low := escaped(raw, i+5); low < 0xDC00 || low >= 0xE000 {
				return notStorable(path, "a lone surrogate")
			}
			i += 6
		}
	}
	return nil
}

// escaped reads \uXXXX at a place, -1 where there is none.
func escaped(raw []byte, at int) int {
	if at+6 > len(raw) || raw[at] != '\\' || raw[at+1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(raw[at+2:at+6]), 16, 16)
	if err != nil {
		return -1
	}
	return int(unit)
}

func notStorable(path, what string) error {
	return fault.New(fault.Invalid, "not_storable", "%s holds %s, which the log cannot keep: clean it first", path, what)
}
