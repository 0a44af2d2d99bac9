package e2e_test

import (
	"encoding/json"
	"io"
	"log"
	"os"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/servers"
)

// roleEnv holds the role of a process started by the tests, configEnv its configuration.
const (
	roleEnv   = "ANSER_E2E_ROLE"
	configEnv = "ANSER_E2E_CONFIG"
)

// longEnv, when it is set, makes faults last as long as the project promises to survive them.
const longEnv = "ANSER_E2E_LONG"

// config is the configuration of a process. Not every role uses all of it.
type config struct {
	Address  string // to listen on
	Registry string // address of the registry
	Dir      string // of the registry's data, or of snapshots
	Ledger   string // file to which executions are appended
	Calls    int    // to make
}

var roles = map[string]func(config) error{
	"registry": runRegistry,
	"instance": runInstance,
	"caller":   runCaller,
}

// all is the test that all tests are in.
var all testing.TB

func TestMain(m *testing.M) {
	name := os.Getenv(roleEnv)
	if name == "" {
		servers.Main(m, func(t testing.TB) { all = t })
		return
	}
	log.SetFlags(log.Lmicroseconds)
	log.SetPrefix(name + ": ")
	go dieWithParent()
	var c config
	if err := json.Unmarshal([]byte(os.Getenv(configEnv)), &c); err != nil {
		log.Fatal(err)
	}
	if err := roles[name](c); err != nil {
		log.Fatal(err)
	}
}

// dieWithParent ends the process when the test has ended: its end of the pipe is then closed.
func dieWithParent() {
	io.Copy(io.Discard, os.Stdin)
	os.Exit(3)
}

// faultTime returns how long an outage lasts.
func faultTime(short, long time.Duration) time.Duration {
	if os.Getenv(longEnv) != "" {
		return long
	}
	return short
}
