module github.com/tidemark-ai/tidemark

go 1.26

require (
	github.com/goccy/go-json v0.12.0 // indirect
	github.com/oklog/ulid/v2 v2.1.2 // indirect
)
