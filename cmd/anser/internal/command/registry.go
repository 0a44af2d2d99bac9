package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/registry/embedded"
)

// registryFlags are the flags of "anser registry".
type registryFlags struct {
	listen    string
	advertise string
	data      string
	members   int
	name      string
	cluster   string
	peer      string
	public    bool
	tls       embedded.TLS
	verbose   bool
	json      bool
}

func newRegistry(s streams) *cobra.Command {
	var f registryFlags
	c := &cobra.Command{
		Use:   "registry",
		Short: "Run a registry: etcd inside this process",
		Long: strings.TrimSpace(`
Run a registry until interrupted: etcd inside this process, with its data on disk. Started again
with the same data it continues with its state; services register again by themselves in any case.

With --members 3 this process runs three members, for experiments. For three hosts, run it on each of
them with the same --initial-cluster and its own --name.

Exit codes: 0 interrupted; 1 the registry failed; 2 wrong use.`),
		Example: strings.Trim(`
  anser registry
  anser registry --members 3 --data /tmp/three
  anser registry --name a --initial-cluster a=10.0.0.1:2380,b=10.0.0.2:2380,c=10.0.0.3:2380 \
    --listen 10.0.0.1:2379 --cert cert.pem --key key.pem --ca ca.pem`, "\n"),
		Args: takes(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			configs, err := f.configs(newRegistryLog(func() bool { return c.Context().Err() != nil }, s.err, f.verbose))
			if err != nil {
				return err
			}
			return runRegistry(c.Context(), s, &f, configs)
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.listen, "listen", "127.0.0.1:2379",
		"address for clients; of three members that of the first, the others use the second and the fourth port after it")
	fs.StringVar(&f.advertise, "advertise", "", "address at which clients reach it, if it differs from --listen")
	fs.StringVar(&f.data, "data", "", "directory for the data (default "+defaultDataText+")")
	fs.IntVar(&f.members, "members", 1, "members in this process: 1 or 3")
	fs.StringVar(&f.name, "name", "", "name of this member in --initial-cluster")
	fs.StringVar(&f.cluster, "initial-cluster", "", "all members as name=host:port,…, with the addresses that the members use among each other")
	fs.StringVar(&f.peer, "peer", "", "address at which this member listens for others, if it differs from --initial-cluster")
	fs.BoolVar(&f.public, "insecure-public", false, "allow addresses that other machines can reach, without TLS")
	fs.StringVar(&f.tls.CertFile, "cert", "", "certificate of this member, for clients and for other members")
	fs.StringVar(&f.tls.KeyFile, "key", "", "its key")
	fs.StringVar(&f.tls.CAFile, "ca", "", "CA certificate for clients and other members")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "print all messages of etcd")
	jsonFlag(c, &f.json)
	return c
}

const defaultDataText = `"anser/registry" where the user's programs keep data`

// defaultData returns the default directory for the data of a registry.
func defaultData() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "anser", "registry"), nil
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return "", fmt.Errorf("%w: choose a directory with --data", err)
		}
		return filepath.Join(dir, "anser", "registry"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%w: choose a directory with --data", err)
	}
	return filepath.Join(home, ".local", "share", "anser", "registry"), nil
}

// configs returns the configurations of the members of this process.
func (f *registryFlags) configs(log *slog.Logger) ([]embedded.Config, error) {
	if f.data == "" {
		dir, err := defaultData()
		if err != nil {
			return nil, err
		}
		f.data = dir
	}
	one := embedded.Config{
		Dir: f.data, Listen: f.listen, Advertise: f.advertise, Insecure: f.public, Logger: log,
	}
	if f.tls != (embedded.TLS{}) {
		one.TLS = &f.tls
	}
	switch {
	case f.members == 3 && f.cluster != "":
		return nil, usagef("--members 3 is three members in this process, --initial-cluster one of several processes: use one of them")
	case f.members == 3:
		return f.three(one)
	case f.members != 1:
		return nil, usagef("--members %d: use 1 or 3", f.members)
	case f.cluster == "" && (f.name != "" || f.peer != ""):
		return nil, usagef("--name and --peer need --initial-cluster")
	case f.cluster != "":
		peers, err := parseCluster(f.cluster)
		if err != nil {
			return nil, err
		}
		one.Name, one.Peers, one.PeerListen = f.name, peers, f.peer
	}
	return []embedded.Config{one}, nil
}

// three returns the members of a cluster in this process: clients use the first port and every
// second one after it, the members the ones in between.
func (f *registryFlags) three(one embedded.Config) ([]embedded.Config, error) {
	host, port, err := net.SplitHostPort(f.listen)
	first, portErr := strconv.Atoi(port)
	if err != nil || portErr != nil || first < 1 || first > 65530 {
		return nil, usagef("--listen %q: three members need host:port with a fixed port", f.listen)
	}
	at := func(n int) string { return net.JoinHostPort(host, strconv.Itoa(first+n)) }
	peers := make(map[string]string)
	configs := make([]embedded.Config, 3)
	for i := range configs {
		name := fmt.Sprintf("m%d", i+1)
		peers[name] = at(2*i + 1)
		configs[i] = one
		configs[i].Dir, configs[i].Name = filepath.Join(f.data, name), name
		configs[i].Listen, configs[i].Peers = at(2*i), peers
	}
	return configs, nil
}

func parseCluster(text string) (map[string]string, error) {
	peers := make(map[string]string)
	for pair := range strings.SplitSeq(text, ",") {
		name, address, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, usagef("--initial-cluster has %q: use name=host:port,name=host:port,…", pair)
		}
		if _, twice := peers[name]; twice {
			return nil, usagef("--initial-cluster names %q twice", name)
		}
		peers[name] = address
	}
	return peers, nil
}

// registryReport is the output of --json when the registry serves.
type registryReport struct {
	Registry string   `json:"registry"`
	Members  []string `json:"members"`
	Data     string   `json:"data"`
}

const registryStart = 60 * time.Second

// runRegistry runs the members until ctx is done or one of them fails.
func runRegistry(ctx context.Context, s streams, f *registryFlags, configs []embedded.Config) (err error) {
	for _, c := range configs {
		l, err := net.Listen("tcp", c.Listen)
		if err != nil {
			return fmt.Errorf("the registry cannot listen on %s: %w\nchoose another address with --listen", c.Listen, err)
		}
		l.Close()
	}
	if len(configs[0].Peers) > 0 && len(configs) == 1 && !f.json {
		fmt.Fprintf(s.err, "waiting until most members of %s run\n", f.cluster)
	}
	members, err := startMembers(ctx, configs)
	defer func() { err = errors.Join(err, stopMembers(members)) }()
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	report := registryReport{Data: f.data}
	for _, m := range members {
		report.Members = append(report.Members, m.Endpoint())
	}
	report.Registry = "etcd://" + strings.Join(report.Members, ",")
	if err := announceRegistry(s, f, report); err != nil {
		return err
	}
	return awaitMembers(ctx, members)
}

func announceRegistry(s streams, f *registryFlags, r registryReport) error {
	if f.json {
		return printJSONLine(s.out, r)
	}
	where := ""
	if r.Members[0] != strings.TrimPrefix(target.DefaultRegistry, "etcd://") {
		where = " --registry " + r.Registry
	}
	_, err := fmt.Fprintf(s.out, "registry at %s, data in %s; try\n\n  anser ls%s\n\n", r.Registry, r.Data, where)
	return err
}

// startMembers starts all members concurrently: none serves before a majority runs.
func startMembers(ctx context.Context, configs []embedded.Config) ([]*embedded.Member, error) {
	if len(configs) > 1 || len(configs[0].Peers) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, registryStart)
		defer cancel()
	}
	members, errs := make([]*embedded.Member, len(configs)), make([]error, len(configs))
	var wg sync.WaitGroup
	for i, c := range configs {
		wg.Go(func() { members[i], errs[i] = embedded.Start(ctx, c) })
	}
	wg.Wait()
	return members, errors.Join(errs...)
}

// stopMembers stops one member after the other: a leader transfers its leadership before it stops,
// and would wait seconds for a member that stops at the same time.
func stopMembers(members []*embedded.Member) error {
	var errs []error
	for _, m := range members {
		if m != nil {
			errs = append(errs, m.Close())
		}
	}
	return errors.Join(errs...)
}

// awaitMembers returns when ctx is done, or with the error of a member that failed.
func awaitMembers(ctx context.Context, members []*embedded.Member) error {
	failed := make(chan error, len(members))
	for _, m := range members {
		go func() {
			select {
			case <-m.Done():
				failed <- m.Err()
			case <-ctx.Done():
			}
		}()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}
