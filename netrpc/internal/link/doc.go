// Package link is a connection for the codecs of netrpc and netrpc/jsonrpc. Output goes into a
// buffer that the first writer flushes for all; input must arrive at the pace of an honest peer.
package link
