package cairn

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// documents lists the Markdown files of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := entry.Name(); entry.IsDir() && name != "." && (strings.HasPrefix(base, ".") || base == "node_modules" || base == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".md") {
			names = append(names, name)
		}
		return nil
	})
	if err != nil || len(names) < 10 {
		t.Fatalf("%d documents: %v", len(names), err)
	}
	return names
}

// prose are the lines of a document that are not fenced code.
func prose(t *testing.T, name string) []string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	fenced := false
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if !fenced {
			lines = append(lines, line)
		}
	}
	return lines
}

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// TestLinksResolve: every relative link leads to a file of the repository, and its anchor to a heading.
func TestLinksResolve(t *testing.T) {
	checked := 0
	for _, name := range documents(t) {
		for _, line := range prose(t, name) {
			for _, found := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, "code"), -1) {
				if strings.Contains(found[1], "://") {
					continue
				}
				checked++
				checkLink(t, name, found[1])
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d links were found: is the pattern right?", checked)
	}
}

func checkLink(t *testing.T, name, target string) {
	t.Helper()
	path, anchor, _ := strings.Cut(target, "#")
	if path = filepath.Join(filepath.Dir(name), path); strings.HasPrefix(target, "#") {
		path = name
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("%s links to %s: %v", name, target, err)
		return
	}
	if anchor == "" {
		return
	}
	for _, line := range prose(t, path) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && line[0] == '#' && slug(title) == anchor {
			return
		}
	}
	t.Errorf("%s links to %s: there is no such heading", name, target)
}

// slug is the anchor of a heading, as GitHub makes it.
func slug(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(title))
}

// TestLengthOfMaps keeps the pages short that people read first.
func TestLengthOfMaps(t *testing.T) {
	for _, name := range []string{"README.md", "AGENTS.md", "ARCHITECTURE.md"} {
		if lines := lineCount(t, name); lines > 120 {
			t.Errorf("%s has %d lines, 120 at most", name, lines)
		}
	}
}

// TestPathsOfMaps: the files that AGENTS.md names exist.
func TestPathsOfMaps(t *testing.T) {
	for _, line := range prose(t, "AGENTS.md") {
		for _, span := range codeSpan.FindAllString(line, -1) {
			path := strings.Trim(span, "`")
			first, _, inFolder := strings.Cut(path, "/")
			if _, known := rooms[first]; !inFolder || !known && !slices.Contains([]string{"cmd", "queries", "docs"}, first) || strings.ContainsAny(path, " <") {
				continue
			}
			if matches, _ := filepath.Glob(strings.ReplaceAll(path, "0000N_name", "*")); len(matches) == 0 {
				t.Errorf("AGENTS.md names %s, which does not exist", path)
			}
		}
	}
}
