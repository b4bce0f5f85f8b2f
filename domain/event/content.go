package event

// Content refers to bytes in the blob store that are too many for a sealed field: a file, a list of files. They are
// encrypted under the key of a space, so that destroying it erases them too. The reference itself says nothing of
// them but their number. The zero Content is none.
type Content struct {
	Key  ID     `json:"key"`  // the space whose key seals it
	Blob string `json:"blob"` // hexadecimal SHA-256 of the encrypted bytes
	Size int64  `json:"size"` // bytes before encryption
}

// IsZero reports whether there is no content.
func (c Content) IsZero() bool { return c == Content{} }

// IsWhole reports whether it can be a reference to content of a space.
func (c Content) IsWhole(space ID) bool {
	return !space.IsZero() && c.Key == space && isDigest(c.Blob) && c.Size >= 0
}
