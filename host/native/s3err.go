//go:build !js

package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/tidemark-ai/tidemark"
)

// classify gives the kind of a store's answer, or nil when it is neither an answer nor the network.
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
func classify(err error) error {
	var api smithy.APIError
	var res *awshttp.ResponseError
	var netErr net.Error
	code, status := "", 0
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	if errors.As(err, &res) {
		status = res.HTTPStatusCode()
	}
	switch {
	case err == nil:
		return nil
	case code == "NoSuchBucket":
		return tidemark.ErrUnavailable // never "not found": an unreachable archive is not an empty one
	case status == http.StatusNotFound:
		return tidemark.ErrNotFound
	case status == http.StatusPreconditionFailed, status == http.StatusConflict:
		return tidemark.ErrConflict
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return tidemark.ErrForbidden
	case status == http.StatusRequestEntityTooLarge, code == "EntityTooLarge":
		return tidemark.ErrTooLarge
	case status == http.StatusTooManyRequests, status >= 500, status >= 300 && status < 400:
		return tidemark.ErrUnavailable
	case status >= 400:
		return tidemark.ErrInvalid
	case errors.As(err, &netErr), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return tidemark.ErrUnavailable
	}
	return nil
}

// hint says what a person can do about an answer.
func (s *S3) hint(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ""
	}
	switch api.ErrorCode() {
	case "NoSuchBucket":
		return fmt.Sprintf("; create the bucket %s or name another one", s.bucket)
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "Forbidden":
		return fmt.Sprintf("; check the access key, the secret key, and what they may do in the bucket %s", s.bucket)
	case "NotImplemented":
		return `; the store may lack conditional writes: set conditional to "none"`
	case "RequestTimeTooSkewed":
		return "; set the clock of this machine"
	}
	return ""
}

// fail names the call, the key and the bucket, and gives the error its kind.
func (s *S3) fail(ctx context.Context, op, key string, err error) error {
	what := fmt.Sprintf("%s blob %s in bucket %s", op, key, s.bucket)
	if key == "" {
		what = fmt.Sprintf("%s bucket %s", op, s.bucket)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	for _, ours := range []error{tidemark.ErrConflict, tidemark.ErrInvalid} { // from condition, or from the body's reader
		if errors.Is(err, ours) {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if kind := classify(err); kind != nil {
		return fmt.Errorf("%s: %w%s: %w", what, err, s.hint(err), kind)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// failPut knows that a missing key breaks the condition of a matching ETag.
func (s *S3) failPut(ctx context.Context, key string, opt tidemark.PutOptions, err error) error {
	if opt.IfMatch != "" && errors.Is(classify(err), tidemark.ErrNotFound) {
		return fmt.Errorf("put blob %s in bucket %s: there is no such key: %w", key, s.bucket, tidemark.ErrConflict)
	}
	return s.fail(ctx, "put", key, err)
}
