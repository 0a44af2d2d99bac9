// Package filetransfer transfers files over the connections of a service's calls: it sends,
// fetches, lists and removes files inside one folder that the server opens.
//
//	root, err := os.OpenRoot("/srv/files")
//	_, err = filetransfer.Serve(s, root) // s is an *anser.Server
//
//	sent, err := filetransfer.Put(ctx, c, "report.pdf", "2026/report.pdf", filetransfer.Parents())
//	got, err := filetransfer.Get(ctx, c, "2026/report.pdf", "copy.pdf")
//
// A transfer whose connection breaks is continued for as long as its context lives; with [Resume]
// also after a restart of the process. The checksum of the whole file is compared before the file
// appears under its name, atomically and complete. Nothing outside of the folder can be reached:
// the server uses an [os.Root], whatever the paths and symbolic links are. A transfer is a stream:
// it shares the connection with other calls, which never wait for a file.
//
// Errors of the server are of type [anser.Error]; its codes are in docs/files.md.
package filetransfer
