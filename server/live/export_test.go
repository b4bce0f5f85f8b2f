package live

// Takes reports whether a client's message is one of this protocol.
func Takes(text string) bool {
	_, err := parse([]byte(text))
	return err == nil
}
