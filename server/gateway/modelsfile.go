package gateway

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// ProtocolOpenAIChat is the only protocol a configured model may speak.
const ProtocolOpenAIChat = "openai-chat"

const (
	defaultTimeout = 600 * time.Second
	maxTimeout     = 3600 * time.Second
	defaultIdle    = 120 * time.Second
	maxModelsFile  = 1 << 20 // bytes
)

// Model is one entry of the models file, checked, with its key read.
type Model struct {
	Name     string // what callers write
	Protocol string
	BaseURL  string // without a slash at the end
	Upstream string // what the provider calls it
	Key      Secret // unknown when the server needs none
	Headers  map[string]string
	Timeout  time.Duration // of a whole call, retries included
	Idle     time.Duration // longest silence of the upstream
}

// Environment is where keys are looked up, so that a test needs no process-wide state.
type Environment func(name string) (string, bool)

// LoadModels reads a models file; docs/models.md describes it. Errors name the
// file and the field, as in "models.json: models[1].base_url: …", and never a key.
func LoadModels(path string, env Environment) ([]Model, error) {
	raw, err := readBounded(path, maxModelsFile)
	if err != nil {
		return nil, fmt.Errorf("models file: %w", err)
	}
	models, err := parseModels(raw, filepath.Dir(path), env)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return models, nil
}

func parseModels(raw []byte, folder string, env Environment) ([]Model, error) {
	top, err := openFields("", raw, "models")
	if err != nil {
		return nil, err
	}
	var entries []json.RawMessage
	if err := top.need("models", &entries, "a list of objects"); err != nil {
		return nil, err
	}
	models, taken := make([]Model, 0, len(entries)), map[string]bool{DemoModel: true}
	for i, entry := range entries {
		place := fmt.Sprintf("models[%d]", i)
		m, err := parseModel(place, entry, folder, env)
		if err != nil {
			return nil, err
		}
		if taken[m.Name] {
			return nil, fmt.Errorf("%s.name: %q is taken (%q is built in)", place, m.Name, DemoModel)
		}
		taken[m.Name] = true
		models = append(models, m)
	}
	return models, nil
}

var modelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}$`)

func parseModel(place string, raw json.RawMessage, folder string, env Environment) (Model, error) {
	var m Model
	f, err := openFields(place, raw, "name", "protocol", "base_url", "model", "api_key_env", "api_key_file",
		"headers", "timeout_seconds", "idle_seconds", "allow_http")
	if err != nil {
		return m, err
	}
	for _, text := range []struct {
		name   string
		target *string
	}{{"name", &m.Name}, {"protocol", &m.Protocol}, {"base_url", &m.BaseURL}, {"model", &m.Upstream}} {
		if err := f.need(text.name, text.target, "a text"); err != nil {
			return m, err
		}
	}
	if !modelName.MatchString(m.Name) {
		return m, f.errorf("name", "%q must be 1 to 128 letters, digits or . _ : / @ -, beginning with a letter or digit", m.Name)
	}
	if m.Protocol != ProtocolOpenAIChat {
		return m, f.errorf("protocol", "%q is not known; there is %q", m.Protocol, ProtocolOpenAIChat)
	}
	if m.Upstream == "" {
		return m, f.errorf("model", "must be the provider's name of the model")
	}
	if m.BaseURL, err = f.baseURL(m.BaseURL); err != nil {
		return m, err
	}
	if m.Key, err = f.key(folder, env); err != nil {
		return m, err
	}
	if m.Headers, err = f.headers(); err != nil {
		return m, err
	}
	if m.Timeout, err = f.seconds("timeout_seconds", defaultTimeout, maxTimeout); err != nil {
		return m, err
	}
	m.Idle, err = f.seconds("idle_seconds", min(defaultIdle, m.Timeout), m.Timeout)
	return m, err
}

func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("%s: must be a regular file of at most %d bytes", path, limit)
	}
	return os.ReadFile(path)
}
