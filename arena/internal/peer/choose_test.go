package peer_test

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/arena/internal/peer"
)

func folder(name, language string, peers ...string) *peer.Folder {
	f := &peer.Folder{Name: name, Language: language}
	for _, p := range peers {
		f.Peers = append(f.Peers, &peer.Peer{Name: p, Folder: f})
	}
	return f
}

var folders = []*peer.Folder{
	folder("anser", "go", "anser", "anser-go"),
	folder("rpcx", "go", "rpcx-call", "rpcx-go"),
	folder("dubbo", "java", "dubbo-java"),
	folder("thrift", "c++", "thrift-cpp"),
}

func TestChoose(t *testing.T) {
	for expression, want := range map[string]string{
		"":                     "anser anser-go rpcx-call rpcx-go dubbo-java thrift-cpp",
		"all":                  "anser anser-go rpcx-call rpcx-go dubbo-java thrift-cpp",
		"anser":                "anser", // the peer, not the folder
		"rpcx":                 "rpcx-call rpcx-go",
		"java,anser":           "dubbo-java anser",
		"cpp":                  "thrift-cpp",
		"c++":                  "thrift-cpp",
		"go,-rpcx":             "anser anser-go",
		"-go":                  "dubbo-java thrift-cpp",
		" rpcx-go , rpcx ,":    "rpcx-go rpcx-call",
		"all,-anser,-cpp,-all": "",
		"-rpcx-go,rpcx":        "rpcx-call",
	} {
		chosen, err := peer.Choose(folders, expression)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), "selects no peer") {
				t.Errorf("%q: %v, %v", expression, chosen, err)
			}
			continue
		}
		var names []string
		for _, p := range chosen {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); got != want || err != nil {
			t.Errorf("%q chooses %q, want %q: %v", expression, got, want, err)
		}
	}
	for _, expression := range []string{"nobody", "go,-nobody"} {
		if _, err := peer.Choose(folders, expression); err == nil || !strings.Contains(err.Error(), "available are anser, anser-go, rpcx-call") {
			t.Errorf("%q: %v", expression, err)
		}
	}
}
