package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Sealed is text that the log holds only encrypted, so that destroying its key erases it while every hash
// still verifies. In memory it is in one of six states:
//
//	none                     no value; JSON null
//	plain  --sealing-->  open     made by Seal, not yet encrypted: refuses to become JSON
//	closed --opening-->  open     read from the log, key not applied yet
//	closed --opening-->  erased   the key was destroyed
//	open   --Shown---->  shown    becomes JSON as plain text, for those who may read it; the log refuses it
//
// The key belongs to the space of the event, or, with the struct tag `seal:"account"`, to the account
// whose stream it is.
type Sealed struct {
	state sealedState
	text  string
	box   Box
	gone  bool // of a shown value: it was erased
}

type sealedState uint8

const (
	sealedNone sealedState = iota
	sealedPlain
	sealedClosed
	sealedOpen
	sealedErased
	sealedShown
)

// Box is the stored form: ciphertext in place, or in the blob store under the SHA-256 of the ciphertext.
type Box struct {
	Key  ID     `json:"key"`           // subject: the space or account whose key seals it
	Size int64  `json:"size"`          // bytes of plain text
	Data []byte `json:"data,omitzero"` // nonce and ciphertext
	Blob string `json:"blob,omitzero"` // hexadecimal SHA-256 of nonce and ciphertext
}

// Seal wraps plain text.
func Seal(text string) Sealed { return Sealed{state: sealedPlain, text: text} }

// Text returns the plain text; it is empty when there is none, when it was erased, or before opening.
func (s Sealed) Text() string { return s.text }

// IsZero reports whether there is no value at all.
func (s Sealed) IsZero() bool { return s.state == sealedNone }

// Erased reports whether the key was destroyed.
func (s Sealed) Erased() bool { return s.state == sealedErased }

// Readable reports whether Text is the value: plain or opened.
func (s Sealed) Readable() bool { return s.state == sealedPlain || s.state == sealedOpen }

// Pending reports whether the value still has to be encrypted.
func (s Sealed) Pending() bool { return s.state == sealedPlain }

// Box returns the stored form, and whether there is one.
func (s Sealed) Box() (Box, bool) { return s.box, s.state >= sealedClosed && s.state != sealedShown }

// WithBox returns the value with the stored form that encryption made of it.
func (s Sealed) WithBox(box Box) Sealed { return Sealed{state: sealedOpen, text: s.text, box: box} }

// Opened returns the value with its plain text.
func (s Sealed) Opened(text string) Sealed { return Sealed{state: sealedOpen, text: text, box: s.box} }

// AsErased returns the value as it reads once its key is gone.
func (s Sealed) AsErased() Sealed { return Sealed{state: sealedErased, box: s.box} }

// Shown returns the value in the form that is shown to those who may read it: as JSON it is its plain text,
// or {"erased":true} once the key is gone. The log refuses to store it.
func (s Sealed) Shown() Sealed {
	if s.state == sealedNone {
		return s
	}
	return Sealed{state: sealedShown, text: s.text, gone: s.Erased()}
}

// IsShown reports whether the value is in its shown form.
func (s Sealed) IsShown() bool { return s.state == sealedShown }

// MarshalJSON writes the stored form. Plain text that was never sealed is refused, so that no mistake can
// write it.
func (s Sealed) MarshalJSON() ([]byte, error) {
	switch s.state {
	case sealedNone:
		return []byte("null"), nil
	case sealedPlain:
		return nil, errors.New("a sealed field holds plain text: it must be encrypted before it is written")
	case sealedShown:
		if s.gone {
			return []byte(`{"erased":true}`), nil
		}
		return json.Marshal(s.text)
	default:
		return json.Marshal(s.box)
	}
}

// UnmarshalJSON reads the stored form.
func (s *Sealed) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*s = Sealed{}
		return nil
	}
	var box Box
	if err := json.Unmarshal(data, &box); err != nil {
		return fmt.Errorf("sealed field: %w", err)
	}
	if box.Key.IsZero() || (len(box.Data) == 0) == (box.Blob == "") || box.Size < 0 {
		return errors.New("sealed field: want a key, a size, and either data or blob")
	}
	// The name leads to a file: nothing but a digest may get there.
	if box.Blob != "" && !isDigest(box.Blob) {
		return fmt.Errorf("sealed field: blob %.80q is not 64 lower-case hexadecimal digits", box.Blob)
	}
	*s = Sealed{state: sealedClosed, box: box}
	return nil
}

func isDigest(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// SealedField is one sealed field of an event type, for checks and documentation.
type SealedField struct {
	Path    string // JSON names joined by dots; [] marks a list
	Account bool   // sealed under the account's key instead of the space's
}

var sealedType = reflect.TypeFor[Sealed]()

func sealedFields(t reflect.Type) []SealedField {
	var fields []SealedField
	var walk func(t reflect.Type, path string, account bool)
	walk = func(t reflect.Type, path string, account bool) {
		switch {
		case t == sealedType:
			fields = append(fields, SealedField{Path: path, Account: account})
		case t.Kind() == reflect.Struct:
			for i := range t.NumField() {
				f := t.Field(i)
				if f.IsExported() {
					walk(f.Type, join(path, jsonName(f)), account || f.Tag.Get("seal") == "account")
				}
			}
		case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
			walk(t.Elem(), path+"[]", account)
		case t.Kind() == reflect.Pointer || t.Kind() == reflect.Map:
			if nested := sealedFields(t.Elem()); t.Elem() == sealedType || len(nested) > 0 {
				panic(fmt.Sprintf("sealed field %s: pointers and maps of sealed values are not supported", path))
			}
		}
	}
	walk(t, "", false)
	return fields
}

// MapSealed returns a copy of the event in which fn has replaced each sealed field. The path is the
// field's place with list indices, as it enters the additional data of the encryption.
func MapSealed(e Event, fn func(path string, account bool, s Sealed) (Sealed, error)) (Event, error) {
	value := reflect.New(reflect.TypeOf(e)).Elem()
	value.Set(reflect.ValueOf(e))
	if err := mapSealed(value, "", false, fn); err != nil {
		return nil, err
	}
	return value.Interface().(Event), nil
}

func mapSealed(v reflect.Value, path string, account bool, fn func(string, bool, Sealed) (Sealed, error)) error {
	switch {
	case v.Type() == sealedType:
		s := v.Interface().(Sealed)
		if s.IsZero() {
			return nil
		}
		replaced, err := fn(path, account, s)
		if err != nil {
			return err
		}
		v.Set(reflect.ValueOf(replaced))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			if err := mapSealed(v.Field(i), join(path, jsonName(f)), account || f.Tag.Get("seal") == "account", fn); err != nil {
				return err
			}
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		clone := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(clone, v)
		for i := range clone.Len() {
			if err := mapSealed(clone.Index(i), path+"["+strconv.Itoa(i)+"]", account, fn); err != nil {
				return err
			}
		}
		if v.Len() > 0 {
			v.Set(clone)
		}
	}
	return nil
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		name = f.Name
	}
	return name
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
