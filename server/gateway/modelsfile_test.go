package gateway

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func testEnv(name string) (string, bool) {
	values := map[string]string{"GOOD": testKey, "SHORT": "abc", "SPACE": "sk with spaces 123", "QUOTE": `sk-"quoted"-123`, "LINE": "sk-line-12345\n"}
	v, ok := values[name]
	return v, ok
}

// writeModels makes a folder with a models file and key files.
func writeModels(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"models.json": text, "key": testKey + "\n", "empty": "", "big": strings.Repeat("k", maxKey+1)}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "models.json")
}

func TestLoadModels(t *testing.T) {
	path := writeModels(t, `{"models":[
		{"name":"full","protocol":"openai-chat","base_url":"https://api.example.com/v1/","model":"provider/one","api_key_file":"key",
		 "headers":{"x-title":"Cairn, here"},"timeout_seconds":60,"idle_seconds":30},
		{"name":"local:7b","protocol":"openai-chat","base_url":"http://127.0.0.1:11434/v1","model":"small"},
		{"name":"lan","protocol":"openai-chat","base_url":"http://models.lan","model":"m","api_key_env":"GOOD","allow_http":true,"timeout_seconds":20}]}`)
	got, err := LoadModels(path, testEnv)
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	full := got[0]
	if full.BaseURL != "https://api.example.com/v1" || full.Upstream != "provider/one" || full.Key.reveal() != testKey ||
		full.Headers["X-Title"] != "Cairn, here" || full.Timeout != time.Minute || full.Idle != 30*time.Second {
		t.Fatalf("%+v", full)
	}
	if got[1].Key.known() || got[1].Timeout != defaultTimeout || got[1].Idle != defaultIdle || got[2].Key.reveal() != testKey || got[2].Idle != 20*time.Second {
		t.Fatalf("%+v", got[1:])
	}
}

func TestModelsFileRefusals(t *testing.T) {
	// %s is put in place of the entry's last fields.
	entry := func(more string) string {
		return `{"models":[{"name":"a","protocol":"openai-chat","model":"m","base_url":"https://h/v1"` + more + `}]}`
	}
	base := func(address string) string {
		return `{"models":[{"name":"a","protocol":"openai-chat","model":"m","base_url":"` + address + `"}]}`
	}
	cases := map[string]struct{ text, want string }{
		"empty":              {``, "the file must be a JSON object"},
		"list":               {`[]`, "the file must be a JSON object"},
		"cut":                {`{"models":[`, "models: is not JSON"},
		"cut later":          {`{"models":[]`, "the file is not JSON"},
		"text after":         {`{"models":[]} x`, "the file has more text after its end"},
		"no models":          {`{}`, "models: missing"},
		"null":               {`{"models":null}`, "models: must be a list of objects"},
		"unknown at top":     {`{"models":[],"modles":1}`, "modles: unknown field; there are models"},
		"entry text":         {`{"models":["x"]}`, "models[0] must be a JSON object"},
		"unknown in entry":   {entry(`,"api_key":"sk-very-secret"`), "models[0].api_key: unknown field"},
		"another case":       {entry(`,"Timeout_Seconds":1`), "models[0].Timeout_Seconds: unknown field"},
		"twice":              {entry(`,"model":"n"`), "models[0].model: given twice"},
		"name missing":       {`{"models":[{}]}`, "models[0].name: missing"},
		"name null":          {`{"models":[{"name":null}]}`, "models[0].name: must be a text"},
		"name odd":           {strings.Replace(entry(""), `"a"`, `"a b"`, 1), "models[0].name:"},
		"name demo":          {strings.Replace(entry(""), `"a"`, `"demo"`, 1), `models[0].name: "demo" is taken`},
		"protocol":           {strings.Replace(entry(""), `openai-chat`, `anthropic`, 1), `models[0].protocol: "anthropic" is not known`},
		"model empty":        {strings.Replace(entry(""), `"m"`, `""`, 1), "models[0].model:"},
		"address empty":      {base(""), "models[0].base_url: must be an address"},
		"address relative":   {base("/v1"), "models[0].base_url: must be an address"},
		"address no host":    {base("https://:443/v1"), "models[0].base_url: must be an address"},
		"plain http":         {base("http://api.example.com/v1"), "models[0].base_url: http to api.example.com would send"},
		"loopback by name":   {base("http://127.0.0.1.example.com"), "models[0].base_url: http to"},
		"user":               {base("https://u:sk-very-secret@h/v1"), "models[0].base_url: must hold no user"},
		"query":              {base("https://h/v1?key=sk-very-secret"), "models[0].base_url: must hold no user"},
		"scheme":             {base("ftp://h/v1"), `models[0].base_url: scheme "ftp"`},
		"allow_http text":    {entry(`,"allow_http":"yes"`), "models[0].allow_http: must be true or false"},
		"both keys":          {entry(`,"api_key_env":"GOOD","api_key_file":"key"`), "models[0].api_key_file: give either"},
		"no variable":        {entry(`,"api_key_env":"NONE"`), `models[0].api_key_env: the environment variable "NONE" is not set`},
		"short key":          {entry(`,"api_key_env":"SHORT"`), "models[0].api_key_env: the key it names must be"},
		"key with spaces":    {entry(`,"api_key_env":"SPACE"`), "models[0].api_key_env: the key it names must be"},
		"key with quotes":    {entry(`,"api_key_env":"QUOTE"`), "models[0].api_key_env: the key it names must be"},
		"key with line end":  {entry(`,"api_key_env":"LINE"`), "models[0].api_key_env: the key it names must be"},
		"no key file":        {entry(`,"api_key_file":"none"`), "models[0].api_key_file:"},
		"empty key file":     {entry(`,"api_key_file":"empty"`), "models[0].api_key_file: the key it names must be"},
		"big key file":       {entry(`,"api_key_file":"big"`), "models[0].api_key_file:"},
		"key file is folder": {entry(`,"api_key_file":"."`), "models[0].api_key_file:"},
		"header for keys":    {entry(`,"headers":{"authorization":"Bearer sk-very-secret"}`), `models[0].headers: "authorization" may not be set`},
		"header name":        {entry(`,"headers":{"a b":"x"}`), `models[0].headers: "a b" may not be set`},
		"header value":       {entry(`,"headers":{"x-a":"a\nb"}`), `models[0].headers: the value of "x-a"`},
		"header null":        {entry(`,"headers":{"x-a":null}`), `models[0].headers: the value of "x-a"`},
		"header twice":       {entry(`,"headers":{"x-a":"1","X-A":"2"}`), `models[0].headers: "X-A" is given twice`},
		"timeout zero":       {entry(`,"timeout_seconds":0`), "models[0].timeout_seconds: 0 must be a whole number of seconds from 1 to 3600"},
		"timeout half":       {entry(`,"timeout_seconds":1.5`), "models[0].timeout_seconds: must be a whole number"},
		"timeout large":      {entry(`,"timeout_seconds":3601`), "models[0].timeout_seconds: 3601"},
		"idle above timeout": {entry(`,"timeout_seconds":10,"idle_seconds":11`), "models[0].idle_seconds: 11 must be a whole number of seconds from 1 to 10"},
		"two of a name": {
			`{"models":[{"name":"a","protocol":"openai-chat","model":"m","base_url":"https://h"},{"name":"a","protocol":"openai-chat","model":"m","base_url":"https://h"}]}`,
			`models[1].name: "a" is taken`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := writeModels(t, c.text)
			got, err := LoadModels(path, testEnv)
			if err == nil || !strings.Contains(err.Error(), path+": "+c.want) || got != nil {
				t.Fatalf("got %+v, %v; want %q", got, err, c.want)
			}
			if strings.Contains(err.Error(), "very-secret") {
				t.Fatalf("the error repeats a key: %v", err)
			}
		})
	}
	if _, err := LoadModels(filepath.Join(t.TempDir(), "none.json"), testEnv); err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Fatal(err)
	}
}
