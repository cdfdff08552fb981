package channel

// BodyTables are the migrations of an Ingress.
var BodyTables = bodyTables

// BookTables are the migrations of a Book.
var BookTables = bookTables
