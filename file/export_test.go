package file

// CheckPath is for the fuzz test.
var CheckPath = checkPath

// PartOf is for a test of what lies in the way.
var PartOf = partOf
