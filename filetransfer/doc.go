// Package filetransfer moves files over the connections of a service's calls: it sends, fetches, lists and removes
// files inside one folder that the server opens.
//
//	root, err := os.OpenRoot("/srv/files")
//	_, err = filetransfer.Serve(s, root) // s is an *anser.Server
//
//	sent, err := filetransfer.Put(ctx, c, "report.pdf", "2026/report.pdf", filetransfer.Parents())
//	got, err := filetransfer.Get(ctx, c, "2026/report.pdf", "copy.pdf")
//
// A transfer whose connection breaks goes on where it was, as long as its context lives; with [Resume] also
// after the process was started again. The checksum of the whole file is compared before the file appears under
// its name, which it does at once and complete. Nothing outside of the folder can be reached: the server works on
// an [os.Root], whatever the paths, symbolic links included. A transfer is a stream: it takes turns with other
// calls, of which none waits for a file.
//
// Errors of the server are of type [anser.Error]; its codes are in docs/files.md.
package filetransfer
