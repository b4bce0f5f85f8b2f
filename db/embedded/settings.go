package embedded

import (
	"fmt"
	"maps"
	"slices"
)

// reserved settings carry the promises of this package and cannot be given.
var reserved = []string{
	"cluster_name", "config_file", "data_directory", "external_pid_file", "fsync", "full_page_writes", "hba_file", "ident_file",
	"listen_addresses", "log_destination", "logging_collector", "port", "unix_socket_directories", "unix_socket_group", "unix_socket_permissions",
}

// settings are given on the server's command line: they win over
// postgresql.conf, and a newer Cairn starts an old folder with its own.
func settings(o Options) (map[string]string, error) {
	s := map[string]string{
		"shared_buffers":     "128MB",
		"max_connections":    "200", // several processes, each with pools
		"max_wal_size":       "1GB",
		"synchronous_commit": "on",
		"jit":                "off", // short queries: compiling costs more than it saves
		"autovacuum_naptime": "5s",  // the table of unsequenced events lives on quick cleaning
		"wal_recycle":        "off", // the folder shrinks again after a burst
		"timezone":           "UTC",
		"log_timezone":       "UTC",

		"log_min_duration_statement": "-1",    // statements may hold content
		"log_error_verbosity":        "terse", // and so may the rows that errors cite
	}
	if !o.Fsync {
		s["synchronous_commit"] = "off"
	}
	for _, name := range slices.Sorted(maps.Keys(o.Settings)) {
		if slices.Contains(reserved, name) || name == "" {
			return nil, fmt.Errorf("setting %q=%q is fixed for the private cluster; fix: leave it out", name, o.Settings[name])
		}
		s[name] = o.Settings[name]
	}
	s["fsync"], s["full_page_writes"] = onOff(o.Fsync), onOff(o.Fsync)
	s["listen_addresses"] = ""
	s["unix_socket_permissions"] = "0700"
	s["logging_collector"] = "off" // postgres.log takes what the server says
	s["log_destination"] = "stderr"
	return s, nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
