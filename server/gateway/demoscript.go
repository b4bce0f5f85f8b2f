package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// demoAction is one line of the user's message that the demo model acts on.
type demoAction struct {
	label     string // the line, for people
	tool      string
	arguments map[string]string
}

// demoActions reads the three forms of line. Every other line is ordinary text.
func demoActions(message string) []demoAction {
	var actions []demoAction
	for _, line := range strings.Split(message, "\n") {
		line = strings.TrimRight(line, "\r")
		if a, ok := demoLine(line); ok {
			a.label = line
			actions = append(actions, a)
		}
	}
	return actions
}

func demoLine(line string) (demoAction, bool) {
	if command, ok := strings.CutPrefix(line, "$ "); ok && strings.TrimSpace(command) != "" {
		return demoAction{tool: "shell", arguments: map[string]string{"command": command}}, true
	}
	if rest, ok := strings.CutPrefix(line, "write "); ok {
		path, text, found := strings.Cut(rest, ":")
		path = strings.TrimSpace(path)
		return demoAction{tool: "write", arguments: map[string]string{"path": path, "content": strings.TrimPrefix(text, " ")}}, found && path != ""
	}
	if path, ok := strings.CutPrefix(line, "read "); ok && strings.TrimSpace(path) != "" {
		return demoAction{tool: "read", arguments: map[string]string{"path": strings.TrimSpace(path)}}, true
	}
	return demoAction{}, false
}

// demoTalk is the part of a conversation that the demo model looks at.
type demoTalk struct {
	message string          // the last user message
	results []string        // tool results after it, in order
	before  int             // tool results ahead of it
	tools   map[string]bool // offered by the caller
	words   int64           // in all messages
}

// readTalk relies on parseRequest having accepted the body.
func readTalk(r Request) demoTalk {
	var messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	var tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	t := demoTalk{tools: map[string]bool{}}
	if json.Unmarshal(r.Body["messages"], &messages) != nil {
		return t
	}
	for _, m := range messages {
		text := contentText(m.Content)
		t.words += int64(len(strings.Fields(text)))
		switch m.Role {
		case "user":
			t.message, t.before, t.results = text, t.before+len(t.results), nil
		case "tool":
			t.results = append(t.results, text)
		}
	}
	if isSet(r.Body["tools"]) && json.Unmarshal(r.Body["tools"], &tools) == nil {
		for _, tool := range tools {
			t.tools[tool.Function.Name] = true
		}
	}
	return t
}

// contentText takes both shapes of content: a text, or a list of parts.
func contentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var all []string
	for _, part := range parts {
		all = append(all, part.Text)
	}
	return strings.Join(all, "\n")
}

const demoHelp = `This is the demo model. It needs no key and does not think: it runs, in order, each line of your message that begins with "$ " through the shell tool, "write PATH: TEXT" through the write tool, and "read PATH" through the read tool, and ends with a summary of what the tools returned.`

// demoAnswer decides one step: words to say, and the call to make, if any.
func demoAnswer(t demoTalk) (string, *demoAction) {
	actions := demoActions(t.message)
	step := len(t.results)
	switch {
	case len(actions) == 0:
		return demoHelp, nil
	case step >= len(actions):
		return demoSummary(actions, t.results), nil
	case !t.tools[actions[step].tool]:
		return fmt.Sprintf("Step %d of %d needs the tool %q, which the caller does not offer: %s", step+1, len(actions), actions[step].tool, firstRunes(actions[step].label)), nil
	}
	return fmt.Sprintf("Step %d of %d: %s\n", step+1, len(actions), firstRunes(actions[step].label)), &actions[step]
}

const (
	summaryLines = 4   // of each result: the exit code and the first lines
	summaryRunes = 200 // of each line
)

func demoSummary(actions []demoAction, results []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Done, %d of %d steps:\n", min(len(results), len(actions)), len(actions))
	for i, a := range actions {
		fmt.Fprintf(&b, "%d. %s\n", i+1, firstRunes(a.label))
		for _, line := range firstLines(results[i]) {
			fmt.Fprintf(&b, "   %s\n", firstRunes(line))
		}
	}
	return b.String()
}

func firstLines(result string) []string {
	var lines []string
	for line := range strings.Lines(result) {
		if line = strings.TrimSpace(line); line != "" && len(lines) < summaryLines {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return []string{"(no output)"}
	}
	return lines
}

func firstRunes(s string) string {
	if utf8.RuneCountInString(s) <= summaryRunes {
		return s
	}
	return string([]rune(s)[:summaryRunes]) + "…"
}
