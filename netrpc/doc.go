// Package netrpc replaces net/rpc by changing one import: it has the same names and the same
// protocol, and features that the frozen net/rpc lacks.
//
//	import rpc "github.com/anser-rpc/anser/netrpc"
//
// Clients and servers of net/rpc and of this package can call each other, over gob and over
// JSON-RPC ([github.com/anser-rpc/anser/netrpc/jsonrpc]), on TCP and through HTTP CONNECT. Codecs
// written for net/rpc can be used, since [ServerCodec], [ClientCodec], [Request], [Response],
// [Call] and [ServerError] are net/rpc's own types.
//
// New features of servers: methods may take a context, which ends when the connection is lost, and
// from which [PeerFrom] and [IdentityFrom] identify the caller; [Server.RegisterFunc] and
// [Server.Alias] give methods arbitrary names; [Server.Authenticate] and [Server.Interceptors]
// control access; [Server.Shutdown] lets calls finish. A panic in a method fails only its call,
// and input is bounded in size, depth and time.
//
// New features of clients: [Client.CallContext] and [Client.GoContext], dialling with a context, a
// timeout or TLS ([DialContext], [DialTimeout], [DialTLS], [DialHTTPTLS]), and [Dialer] for other
// settings.
//
// Everything in this package is safe for concurrent use unless its comment says otherwise.
// docs/netrpc.md describes the differences for programs that migrate from net/rpc.
package netrpc
