// Codecs measures how long codecs take to encode and to decode the data of the message of 581
// bytes, and prints the result as JSON. "arena codecs" runs it and enters the result into a
// document.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	each := flag.Duration("each", time.Second, "seconds per codec and direction")
	flag.Parse()
	if flag.NArg() > 0 || *each <= 0 {
		fmt.Fprintln(os.Stderr, "codecs: no arguments, and --each must be more than 0")
		os.Exit(2)
	}
	if err := run(*each); err != nil {
		fmt.Fprintf(os.Stderr, "codecs: %v\n", err)
		os.Exit(1)
	}
}

func run(each time.Duration) error {
	subjects, err := all()
	if err != nil {
		return err
	}
	results, err := measure(subjects, each)
	if err != nil {
		return err
	}
	e := json.NewEncoder(os.Stdout)
	e.SetEscapeHTML(false)
	return e.Encode(results)
}
