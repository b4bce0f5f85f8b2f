package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/sandbox"
)

// maxLayers is the number of uppers that one workspace is stacked from. The kernel takes 500.
const maxLayers = 200

// defaultPath is where the sandbox looks for programs, unless it is told otherwise.
const defaultPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

func (c Config) spec(ctx context.Context, id, space event.ID, state run.State, past []Past) (sandbox.Spec, error) {
	spec := sandbox.Spec{
		ID: name(id, state.Epoch), RunDir: filepath.Join(c.Dir, id.String()), Limits: c.Limits, Grade: c.Grade, Require: c.Require,
	}
	spec.Limits.Output = int(state.Limits.OutputBytes)
	if err := c.own(id, state); err != nil {
		return spec, err
	}
	if state.Sandbox.Epoch != 0 {
		spec.RunDir = filepath.Dir(state.Sandbox.Upper) // another worker of this host may keep its runs elsewhere
	}
	var err error
	if spec.Lowers, err = c.lowers(ctx, space, state, past); err != nil {
		return spec, err
	}
	if spec.Mounts, err = c.mounts(state.Mounts); err != nil {
		return spec, err
	}
	if spec.Network, err = c.network(state); err != nil {
		return spec, err
	}
	spec.Env = c.environment(spec.Mounts)
	c.offline(spec.Env, spec.Network)
	return spec, nil
}

// lowers are the earlier runs' uppers, newest first, then the source. They serve as they are: whiteouts and
// opaque folders of an upper mean the same in a lower, and redirects and metadata-only copies, which would
// not, are never made in a user namespace. An empty one adds nothing and is passed over.
func (c Config) lowers(ctx context.Context, space event.ID, state run.State, past []Past) ([]string, error) {
	var lowers []string
	for i := len(past) - 1; i >= 0; i-- {
		if past[i].Sandbox.Epoch == 0 {
			continue // it used no tool
		}
		if err := c.reach("earlier run "+past[i].Run.String(), past[i].Sandbox); err != nil {
			return nil, err
		}
		empty, err := isEmpty(past[i].Sandbox.Upper)
		if err != nil {
			return nil, lost("the files of earlier run %s cannot be read: %v", past[i].Run, err)
		}
		if !empty {
			lowers = append(lowers, past[i].Sandbox.Upper)
		}
	}
	if len(lowers) > maxLayers {
		return nil, refuse("the workspace is stacked from the changes of %d runs, the limit is %d: start a new conversation or task", len(lowers), maxLayers)
	}
	source, err := c.source(state.Source)
	if state.Source.Kind == run.SourceFiles {
		source, err = c.material(ctx, space, state.Source.Files)
	}
	if source != "" {
		lowers = append(lowers, source)
	}
	return lowers, err
}

func isEmpty(dir string) (bool, error) {
	f, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err
}

// source is the folder of the host to start from, with its links resolved; empty when there is none.
func (c Config) source(s run.Source) (string, error) {
	if s.Kind == run.SourceNone || s.Kind == run.SourceFiles {
		return "", nil
	}
	if s.Kind != run.SourceFolder {
		return "", refuse("source of kind %q is not known to this worker: use a newer one", s.Kind)
	}
	root, offered := c.Roots[s.Root]
	if !offered {
		return "", refuse("root %q is not offered by this worker: add --root %s=FOLDER to it", s.Root, s.Root)
	}
	path := s.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	path, err := inside(path, root)
	if err != nil {
		return "", refuse("source %q of root %q: %v: choose a folder inside the root, or offer another one", s.Path, s.Root, err)
	}
	return path, nil
}

// mounts are the tool chains that the run asks for, each inside one that this worker offers.
func (c Config) mounts(asked []run.Mount) ([]sandbox.Mount, error) {
	var mounts []sandbox.Mount
	for _, m := range asked {
		path, err := c.tool(m.Source)
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, sandbox.Mount{Source: path, Target: m.Target})
	}
	return mounts, nil
}

func (c Config) tool(source string) (string, error) {
	for _, offered := range c.Tools {
		if path, err := inside(source, offered); err == nil {
			return path, nil
		}
	}
	return "", refuse("mount %s is not offered by this worker: add --tool %s to it", source, source)
}

// inside resolves the links of both paths and refuses a path that is not in the folder.
func inside(path, folder string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", withoutPath(err)
	}
	within, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", withoutPath(err)
	}
	if resolved != within && !strings.HasPrefix(resolved, strings.TrimSuffix(within, "/")+"/") {
		return "", errors.New("it leads to a place that is not inside")
	}
	return resolved, nil
}

// withoutPath keeps places of the host from those who read why a run failed.
func withoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// environment makes the programs of mounted tool chains found.
func (c Config) environment(mounts []sandbox.Mount) map[string]string {
	env := map[string]string{"PATH": defaultPath}
	for name, value := range c.Env {
		env[name] = value
	}
	for i := len(mounts) - 1; i >= 0; i-- {
		if info, err := os.Stat(filepath.Join(mounts[i].Source, "bin")); err == nil && info.IsDir() {
			env["PATH"] = mounts[i].Target + "/bin:" + env["PATH"]
		}
	}
	return env
}
