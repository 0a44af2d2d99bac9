package site

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
)

// maxArena is the maximum size of the report of the arena, in bytes.
const maxArena = 8 << 20

// arenaPolicy keeps a report away from the console: with a sandbox it has an origin of its own, so
// that its scripts can use no session.
const arenaPolicy = "sandbox allow-scripts allow-popups; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; " +
	"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// serveArena returns a handler that serves the report of the arena in a file, as it is at the time
// of the request.
func serveArena(who *access.Access, file string) http.Handler {
	return who.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		data, err := readArena(file)
		if err != nil {
			respond.Fail(w, http.StatusNotFound, "the report of the arena cannot be read: "+err.Error(), "look at the file of --arena")
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", arenaPolicy)
		w.Write(data)
	}), access.Look)
}

// checkArena returns an error if a file has no report.
func checkArena(file string) error {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return fmt.Errorf("--arena: %s is a folder: name the report in it, which \"go run ./arena report RESULTS --html FILE\" writes", file)
	}
	data, err := readArena(file)
	if err == nil && len(data) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return fmt.Errorf("--arena: the report %s cannot be read: %w: name the file that \"go run ./arena report RESULTS --html FILE\" writes", file, err)
	}
	return nil
}

// readArena reads a report. Its errors are for viewers: they do not say where the file is.
func readArena(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			err = at.Err
		}
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxArena+1))
	if err == nil && len(data) > maxArena {
		err = fmt.Errorf("it has more than %d bytes", maxArena)
	}
	return data, err
}
