package command

import "strings"

// hints replaces advice of the libraries, which name Go options, by flags of this command.
var hints = strings.NewReplacer(
	"give the client anser.TLS, or accept that others read it with anser.InsecureCredentials", "use --tls",
	"give the client anser.TLS", "use --tls",
	"give the server anser.TLS, or leave the option out here", "does the server speak TLS? If not, leave --tls and the flags like it out",
	"give the client anser.Credentials or a certificate that the server takes", "use --token-file, or --cert and --key",
	"raise it with anser.MaxMessage on the client", "raise it with --max-message",
	"send with filetransfer.Parents", "send with --parents",
	"the server was not given anser.TLS", "the server speaks none: leave --tls and the flags like it out",
	"is a stream: use anser.Open", "is a stream: use anser call --stream",
	"is not a stream: use anser.Call", "is not a stream: leave --stream out",
	"is oneway: use anser.Send", "is oneway: use --oneway",
	"(anser.Checksums): use a version that does, or leave the option out", "(--checksums): leave the flag out, or upgrade the server",
	"listen on 127.0.0.1, or accept the risk with anser.InsecurePublic", "listen on 127.0.0.1, or accept the risk with --insecure-public",
	"give the server anser.TLS and anser.Authenticate (or a TLS configuration whose ClientAuth is tls.RequireAndVerifyClientCert), ", "",
	"use the option etcd.User", "use --registry-user and $ANSER_REGISTRY_PASSWORD",
	"use the option redis.User", "use --registry-user and $ANSER_REGISTRY_PASSWORD",
	"use the option nacos.User with a name that has permission", "use --registry-user and $ANSER_REGISTRY_PASSWORD, with a name that has permission",
	"use the option zookeeper.Digest", "use --registry-user and $ANSER_REGISTRY_PASSWORD",
	"use the option consul.Token", "put a token into $ANSER_REGISTRY_TOKEN",
	"is an httpconnect.Handler at this path?", "is an httpconnect.Handler at this path? Without http:// the command speaks Anser's protocol",
	"anser.Conns(", "--conns (",
	"anser.MaxMessage(", "--max-message (",
)
