import CCurl

/// Owner of one curl easy handle with everything that it points to.
///
/// Not Sendable: it lives on the HTTP client's thread. Connections are never reused: libcurl sends a POST again by
/// itself when a reused connection dies early, and a generation must not run twice.
final class HTTPTransfer {
    let easy: UnsafeMutableRawPointer
    private var headers: UnsafeMutablePointer<curl_slist>?
    private let body: UnsafeMutableBufferPointer<UInt8>?
    private let errorText: UnsafeMutablePointer<CChar>
    /// Weak: the reader owns the exchange; when it is dropped, the transfer is given up.
    private(set) weak var exchange: HTTPExchange?

    init(_ request: HTTPRequest, _ exchange: HTTPExchange) throws(HTTPError) {
        guard let easy = curl_easy_init() else { throw HTTPError(.invalid, "no memory for an HTTP request") }
        self.easy = easy
        self.exchange = exchange
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        body = request.body.map { bytes in
            let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
            _ = copy.initialize(from: bytes)
            return copy
        }
        for (name, value) in request.headers {
            guard !name.contains(where: \.isNewline), !value.contains(where: \.isNewline) else {
                throw HTTPError(.invalid, "the header \(name) has a line break")
            }
            headers = curl_slist_append(headers, "\(name): \(value)")
        }
        // curl would wait for "100 Continue" before a larger body.
        headers = curl_slist_append(headers, "Expect:")
        try configure(request)
    }

    deinit {
        curl_easy_cleanup(easy)
        curl_slist_free_all(headers)
        body?.deallocate()
        errorText.deallocate()
    }

    private func configure(_ request: HTTPRequest) throws(HTTPError) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        var results = [
            ccurl_set_string(easy, CURLOPT_URL, request.url),
            ccurl_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https"),
            ccurl_set_string(easy, CURLOPT_CUSTOMREQUEST, request.method.rawValue),
            ccurl_set_pointer(easy, CURLOPT_HTTPHEADER, headers),
            ccurl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText),
            ccurl_set_pointer(easy, CURLOPT_PRIVATE, context),
            ccurl_set_pointer(easy, CURLOPT_WRITEDATA, context),
            ccurl_set_callback(easy, CURLOPT_WRITEFUNCTION, receiveBody),
            ccurl_set_pointer(easy, CURLOPT_HEADERDATA, context),
            ccurl_set_callback(easy, CURLOPT_HEADERFUNCTION, receiveHeader),
            ccurl_set_long(easy, CURLOPT_NOSIGNAL, 1),
            ccurl_set_long(easy, CURLOPT_FRESH_CONNECT, 1),
            ccurl_set_long(easy, CURLOPT_FORBID_REUSE, 1),
            ccurl_set_long(easy, CURLOPT_FOLLOWLOCATION, 0),
            ccurl_set_long(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
            ccurl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, request.connectTimeout.milliseconds),
            ccurl_set_string(easy, CURLOPT_USERAGENT, "gencluster"),
            // A proxy from the environment would see prompts and keys.
            ccurl_set_string(easy, CURLOPT_NOPROXY, "*"),
        ]
        if let total = request.totalTimeout {
            results.append(ccurl_set_long(easy, CURLOPT_TIMEOUT_MS, total.milliseconds))
        }
        if let body {
            // The size first: without it curl would look for a NUL.
            results.append(ccurl_set_offset(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count)))
            results.append(ccurl_set_pointer(easy, CURLOPT_POSTFIELDS, body.baseAddress))
        }
        if let failed = results.first(where: { $0 != CURLE_OK }) {
            throw HTTPError(.invalid, "libcurl refuses the request: \(String(cString: curl_easy_strerror(failed)))")
        }
    }

    /// What the end of the transfer means for its reader.
    func outcome(_ result: CURLcode) -> Result<Void, HTTPError> {
        if result == CURLE_OK { return .success(()) }
        let detail = String(cString: errorText)
        let reason = detail.isEmpty ? String(cString: curl_easy_strerror(result)) : detail
        switch result {
        case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY,
            CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION:
            return .failure(HTTPError(.unreachable, reason))
        case CURLE_OPERATION_TIMEDOUT:
            var connected = 0
            _ = ccurl_get_long(easy, CURLINFO_CONNECT_TIME_T, &connected)
            return .failure(HTTPError(connected == 0 ? .unreachable : .timeout, reason))
        case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: return .failure(HTTPError(.invalid, reason))
        default: return .failure(HTTPError(.connectionLost, reason))
        }
    }

    fileprivate func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let exchange else { return 0 }  // Less than was given: curl ends the transfer.
        return exchange.update { state in
            guard state.buffered < HTTPExchange.bufferLimit else {
                state.isPaused = true
                return Int(CURL_WRITEFUNC_PAUSE)
            }
            state.pieces.append(Array(bytes))
            state.buffered += bytes.count
            return bytes.count
        }
    }

    fileprivate func headEnded() {
        var status = 0
        _ = ccurl_get_long(easy, CURLINFO_RESPONSE_CODE, &status)
        // 1xx answers are followed by the real one.
        guard status >= 200 else { return }
        // curl reads both forms of it, a count of seconds and a date; what is neither is 0.
        var retryAfter = curl_off_t(0)
        _ = ccurl_get_offset(easy, CURLINFO_RETRY_AFTER, &retryAfter)
        exchange?.update { state in
            state.status = status
            state.retryAfterSeconds = max(0, Int(clamping: retryAfter))
        }
    }
}

// File-scope functions, since C callbacks carry no context but the pointer, and belong to no actor.

private func receiveBody(
    _ data: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let data, let context else { return 0 }
    let transfer = Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue()
    return transfer.receive(UnsafeRawBufferPointer(start: data, count: size * count))
}

private func receiveHeader(
    _ data: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let data, let context else { return 0 }
    // The head ends with an empty line.
    let isEmpty = size * count <= 2 && (data[0] == 13 || data[0] == 10)
    if isEmpty { Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue().headEnded() }
    return size * count
}
