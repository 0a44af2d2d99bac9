// Package link is a connection for protocols with a framing of their own, such as those of net/rpc
// and rpcx. Output goes into a buffer that the first writer flushes for all; input must arrive at
// the pace of an honest peer.
package link
