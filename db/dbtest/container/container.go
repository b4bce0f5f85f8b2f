// Package container runs PostgreSQL in a Docker container, for tests on machines
// that have an engine but neither PostgreSQL binaries nor npm. It may import the
// standard library and testcontainers-go, and is imported by tests only.
//
// It is the last step of the tests' search: TEST_DATABASE_URL, the private
// cluster, then this. It was compiled but never run: no Docker engine
// was at hand when it was written. Only Answers was tried, against a socket that answers as an engine does.
package container

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

// image is the oldest supported major version: what runs there runs on newer ones.
const image = "postgres:15-alpine"

// Answers probes the engine's socket, not the docker command, which may be
// installed without an engine. The request is GET /_ping of the Docker Engine API.
// Only unix sockets are probed: DOCKER_HOST, else /var/run/docker.sock.
func Answers(ctx context.Context) error {
	socket, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if !ok && socket != "" {
		return fmt.Errorf("DOCKER_HOST=%s is not a unix socket; fix: give unix:///PATH, or set TEST_DATABASE_URL", socket)
	}
	if socket == "" {
		socket = "/var/run/docker.sock"
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/_ping", nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no Docker engine answers at %s: %w", socket, err)
	}
	if res.Body.Close(); res.StatusCode != http.StatusOK {
		return fmt.Errorf("the Docker engine at %s answers %s", socket, res.Status)
	}
	return nil
}

// Open starts a container and returns the URL of its superuser, and what ends it.
func Open(ctx context.Context) (url string, end func(context.Context) error, err error) {
	if err := Answers(ctx); err != nil {
		return "", nil, err
	}
	password := rand.Text() // Docker publishes the port on every interface
	c, err := testcontainers.Run(ctx, image,
		testcontainers.WithEnv(map[string]string{"POSTGRES_PASSWORD": password}),
		testcontainers.WithCmd("postgres", "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c", "max_connections=200"),
		testcontainers.WithExposedPorts("5432/tcp"),
		// The image starts a first server for its own set-up, then the real one.
		testcontainers.WithWaitStrategyAndDeadline(2*time.Minute,
			wait.ForLog("database system is ready to accept connections").WithOccurrence(2), wait.ForListeningPort("5432/tcp")))
	stop := func(ctx context.Context) error {
		return testcontainers.TerminateContainer(c, testcontainers.StopContext(ctx))
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("starting %s: %w", image, err), stop(ctx))
	}
	address, err := c.PortEndpoint(ctx, "5432/tcp", "")
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("address of %s: %w", image, err), stop(ctx))
	}
	return "postgres://postgres:" + password + "@" + address + "/postgres?sslmode=disable", stop, nil
}
