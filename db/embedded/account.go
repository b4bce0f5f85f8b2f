package embedded

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user PostgreSQL runs as.
type account struct {
	uid, gid int
	name     string
	drop     bool // we are root and must give up that right
}

// accountFor chooses the account; data may not exist yet. The owner of existing
// data wins, since installing a postgres user later must not lock out data of nobody.
func accountFor(data string) (account, error) {
	if uid := os.Geteuid(); uid != 0 {
		return account{uid: uid, gid: os.Getegid(), name: nameOf(uid)}, nil
	}
	if uid, gid, err := ownerOf(data); err == nil && uid != 0 {
		return account{uid: uid, gid: gid, name: nameOf(uid), drop: true}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uerr := strconv.Atoi(u.Uid)
		gid, gerr := strconv.Atoi(u.Gid)
		if uerr == nil && gerr == nil && uid != 0 {
			return account{uid: uid, gid: gid, name: name, drop: true}, nil
		}
	}
	return account{}, &NoAccount{}
}

// command prepares a program that runs as the account, in dir, with an
// environment that no PG* variable of the caller leaks into. Messages are in
// English, because "no space left" is looked for in them.
func (a account) command(dir, path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	if v := os.Getenv("LD_LIBRARY_PATH"); v != "" {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+v)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if a.drop {
		cmd.SysProcAttr.Credential = &syscall.Credential{
			Uid: uint32(a.uid), Gid: uint32(a.gid), Groups: []uint32{uint32(a.gid)},
		}
	}
	return cmd
}

// reach fails when the account cannot enter dir. The kernel decides, by really
// entering it as the account; the mode bits are read only to name the culprit.
func (a account) reach(dir string, bin Binaries) error {
	if !a.drop {
		return nil
	}
	err := a.command(dir, bin.path("postgres"), "--version").Run()
	if errors.Is(err, fs.ErrPermission) {
		if u := a.blocked(dir); u != nil {
			return u
		}
	}
	return err
}

// blocked names the first folder on the way to dir that the account cannot enter.
func (a account) blocked(dir string) *Unreachable {
	var way []string
	for p := dir; ; p = filepath.Dir(p) {
		way = append(way, p)
		if p == filepath.Dir(p) {
			break
		}
	}
	for i := len(way) - 1; i >= 0; i-- {
		if info, err := os.Stat(way[i]); err == nil && !a.enters(info) {
			return &Unreachable{Target: dir, Folder: way[i], Mode: info.Mode(), Account: a.name}
		}
	}
	return nil
}

func (a account) enters(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return true
	case int(st.Uid) == a.uid:
		return info.Mode()&0o100 != 0
	case int(st.Gid) == a.gid:
		return info.Mode()&0o010 != 0
	}
	return info.Mode()&0o001 != 0
}

// give makes path the account's own.
func (a account) give(path string) error {
	if !a.drop {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}

func ownerOf(path string) (uid, gid int, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, errors.New("no owner known for " + path)
	}
	return int(st.Uid), int(st.Gid), nil
}

func nameOf(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}
