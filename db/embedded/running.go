package embedded

import "path/filepath"

// Running gives the superuser's URL of a database in the cluster of dir, when the
// cluster runs now; it starts nothing and takes no part in keeping it alive.
func Running(dir, db string) (url string, ok bool) {
	data := filepath.Join(dir, dataName)
	uid, _, err := ownerOf(data)
	if err != nil {
		return "", false
	}
	p, ok := readPidFile(data)
	if !ok || !isPostmaster(p.pid, uid, data) {
		return "", false
	}
	c := &Cluster{socket: p.socket, port: p.port}
	return c.URL(db, superuser), true
}
