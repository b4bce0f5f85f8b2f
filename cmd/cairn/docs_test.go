package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const reference = "../../docs/reference/cli.md"

// commandTree is the root with the commands that the library adds.
func commandTree() *cobra.Command {
	root := newRoot()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}

// sections are the parts of the reference by their heading.
func sections(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	parts, title := map[string]string{}, ""
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "##") {
			title = strings.TrimSpace(strings.TrimLeft(line, "#"))
			parts[title] = ""
		}
		parts[title] += line
	}
	return parts
}

// TestReferenceOfCommands: the reference describes each command with each of its flags, and no other.
func TestReferenceOfCommands(t *testing.T) {
	parts := sections(t)
	known := map[string]bool{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, child := range c.Commands() {
			known[child.CommandPath()] = true
			checkSection(t, child, parts)
			if child.Name() != "completion" {
				walk(child)
			}
		}
	}
	root := commandTree()
	walk(root)
	for title := range parts {
		if strings.HasPrefix(title, "cairn ") && !known[title] {
			t.Errorf("the reference describes %q, which is no command", title)
		}
	}
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(parts["Flags of every command"], "`--"+f.Name) {
			t.Errorf("the reference lacks the flag --%s of every command", f.Name)
		}
	})
}

var flagName = regexp.MustCompile(`--([a-z][a-z-]*)`)

func checkSection(t *testing.T, c *cobra.Command, parts map[string]string) {
	t.Helper()
	part, ok := parts[c.CommandPath()]
	if !ok {
		t.Errorf("the reference has no section %q", c.CommandPath())
		return
	}
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !strings.Contains(part, "`--"+f.Name) {
			t.Errorf("%s: the reference lacks the flag --%s", c.CommandPath(), f.Name)
		}
	})
	for _, row := range strings.Split(part, "\n") {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		if !strings.HasPrefix(row, "| `--") {
			continue
		}
		for _, name := range flagName.FindAllStringSubmatch(first, -1) {
			if c.Flags().Lookup(name[1]) == nil {
				t.Errorf("%s: the reference describes the flag --%s, which does not exist", c.CommandPath(), name[1])
			}
		}
	}
}

var (
	fencedOrIndented = regexp.MustCompile("(?ms)^```.*?^```|^    .*?$")
	inline           = regexp.MustCompile("`[^`\n]+`")
	// called is a command line of cairn up to the first quote, comment or pipe.
	called = regexp.MustCompile("(?m)(?:^|[ `(]|bin/)cairn ([a-z][^'\"`#|\n]*)")
)

// TestDocumentsNameRealCommands: every command line in any document has a command and flags that exist.
func TestDocumentsNameRealCommands(t *testing.T) {
	checked := 0
	err := filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := entry.Name(); entry.IsDir() && strings.HasPrefix(base, ".") && base != ".." {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".md") {
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		text := strings.ReplaceAll(string(content), "\\\n", " ")
		text = strings.ReplaceAll(text, "— cairn ", "") // a signature
		code := append(fencedOrIndented.FindAllString(text, -1), inline.FindAllString(fencedOrIndented.ReplaceAllString(text, ""), -1)...)
		for _, c := range code {
			for _, line := range called.FindAllStringSubmatch(c, -1) {
				checked++
				checkLine(t, name, strings.Fields(line[1]))
			}
		}
		return nil
	})
	if err != nil || checked < 30 {
		t.Fatalf("%d command lines: %v", checked, err)
	}
}

func checkLine(t *testing.T, name string, words []string) {
	t.Helper()
	c := commandTree()
	for len(words) > 0 && c.HasSubCommands() && !strings.ContainsAny(words[0], "-0123456789") {
		next, _, err := c.Find(words[:1])
		if err != nil || next == c {
			t.Errorf("%s: there is no command %q in %s", name, words[0], c.CommandPath())
			return
		}
		c, words = next, words[1:]
	}
	for _, word := range words {
		flag, ok := strings.CutPrefix(word, "--")
		flag, _, _ = strings.Cut(flag, "=")
		if ok && flag != "help" && c.Flags().Lookup(flag) == nil && c.InheritedFlags().Lookup(flag) == nil {
			t.Errorf("%s: %s has no flag --%s", name, c.CommandPath(), flag)
		}
	}
}

var page = regexp.MustCompile(`docs/[a-z0-9/-]+\.md`)

// TestHelpNamesRealPages: a page that the source of a command names exists.
func TestHelpNamesRealPages(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range page.FindAllString(string(source), -1) {
			if _, err := os.Stat("../../" + name); err != nil {
				t.Errorf("%s names a page: %v", file, err)
			}
		}
	}
}
