package nacos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/nacos"
	"github.com/anser-rpc/anser/registry/registrytest"
)

// testPoll makes watches fast. An application has no need for that.
const testPoll = 100 * time.Millisecond

func TestConformance(t *testing.T) {
	registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
		namespace := freshNamespace()
		way := newProxy(t, shared.address)
		return registrytest.Fixture{
			Open: func() registry.Registry {
				r, err := nacos.Dial([]string{way.address}, nacos.Namespace(namespace), nacos.PollEvery(testPoll))
				if err != nil {
					t.Fatal(err)
				}
				return r
			},
			Stop: way.stop,
			Start: func() {
				if err := way.start(); err != nil {
					t.Fatal(err)
				}
			},
			ForgetLeases: func() { forget(t, namespace) },
			HostPortOnly: true,
			Many:         100,             // this server writes and sends the whole list for each of them
			ServerInside: true,            // the proxy; the whole is checked in TestMain
			Patience:     2 * time.Minute, // the last instance of a service is removed 30 to 35 s after its last heartbeat
		}
	}, registrytest.Documents)
}

// host is an instance in the JSON of Nacos's own API.
type host struct {
	IP       string            `json:"ip"`
	Port     int               `json:"port"`
	Weight   float64           `json:"weight"`
	Cluster  string            `json:"clusterName"`
	Valid    bool              `json:"valid"`
	Metadata map[string]string `json:"metadata"`
}

func hosts(t *testing.T, service, namespace string) []host {
	t.Helper()
	body, err := shared.call(http.MethodGet, query(service, namespace))
	if isMissing(err) {
		return nil
	}
	var answer struct{ Hosts []host }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Hosts
}

// everything returns the instances of all services.
func everything(t *testing.T, namespace string) map[string][]host {
	t.Helper()
	body, err := shared.call(http.MethodGet, "/service/list?pageNo=1&pageSize=100&namespaceId="+namespace)
	if isMissing(err) {
		return nil
	}
	var names struct{ Doms []string }
	if err := json.Unmarshal([]byte(body), &names); err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]host)
	for _, name := range names.Doms {
		all[name] = hosts(t, name, namespace)
	}
	return all
}

func Example() {
	address := shared.address // for example 127.0.0.1:8848
	server, err := nacos.Dial([]string{address}, nacos.Namespace("shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close() // withdraws the announced instances
	client, err := nacos.Dial([]string{address}, nacos.Namespace("shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	in := registry.Instance{Service: "arith", Address: "10.0.0.1:8972", Zone: "north"}
	if err := server.Register(ctx, in); err != nil {
		fmt.Println(err)
		return
	}
	client.Watch(ctx, "arith", func(list []registry.Instance) {
		fmt.Println(len(list), list[0].Address, list[0].Zone)
		cancel() // an application watches until it stops
	}, nil)
	// Output: 1 10.0.0.1:8972 north
}

func encode(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
