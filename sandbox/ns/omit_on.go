//go:build sandboxomit

package ns

const canOmit = true
