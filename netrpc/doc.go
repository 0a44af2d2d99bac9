// Package netrpc is net/rpc with one changed import: the same names, the same wire, and what net/rpc was
// frozen without.
//
//	import rpc "github.com/anser-rpc/anser/netrpc"
//
// Clients and servers of net/rpc and of this package call each other, over gob and over JSON-RPC
// ([github.com/anser-rpc/anser/netrpc/jsonrpc]), on TCP and through HTTP CONNECT. Codecs that were
// written for net/rpc fit, since [ServerCodec], [ClientCodec], [Request], [Response], [Call] and
// [ServerError] are net/rpc's own types.
//
// What is new for a server: methods may take a context, which ends when the connection is lost, and
// from which [PeerFrom] and [IdentityFrom] tell who calls; [Server.RegisterFunc] and [Server.Alias] give
// methods any names; [Server.Authenticate] and [Server.Interceptors] decide who may call what;
// [Server.Shutdown] lets calls finish. A method that panics fails its call and nothing else, and what
// a peer sends is bounded in size, depth and time.
//
// What is new for a client: [Client.CallContext] and [Client.GoContext], dialling with a context, a
// timeout or TLS ([DialContext], [DialTimeout], [DialTLS], [DialHTTPTLS]), and [Dialer] for the rest.
//
// Everything in this package is safe for concurrent use unless its comment says otherwise. docs/netrpc.md
// tells what changes for a program that comes from net/rpc.
package netrpc
