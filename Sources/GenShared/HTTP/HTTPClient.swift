import CCurl
import Glibc
import Synchronization

/// All HTTP of a process, on one thread: a curl multi handle.
package actor HTTPClient {
    enum Request: Sendable {
        case start(HTTPRequest, HTTPExchangeReference)
        case resume(UInt64)
        case abandon(UInt64)
    }

    /// An exchange on its way to the client's thread; weak, so that one that was dropped meanwhile never starts.
    struct HTTPExchangeReference: Sendable {
        weak let exchange: HTTPExchange?
        let number: UInt64
    }

    private nonisolated let executor: PinnedExecutor
    private nonisolated let mailbox = Mailbox<Request>()
    private nonisolated let numbers = Atomic<UInt64>(0)
    private var multi: UnsafeMutableRawPointer?
    private var transfers: [UInt64: HTTPTransfer] = [:]

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Must be preceded by `ProcessSetup.run()`, which initialises curl before there are threads.
    package init() {
        executor = PinnedExecutor(name: "http")
        executor.poll(self)
    }

    isolated deinit { shutDown() }

    /// Starts a request.
    ///
    /// Nothing is awaited here: status and body come through the exchange.
    package nonisolated func start(_ request: HTTPRequest) -> HTTPExchange {
        let number = numbers.add(1, ordering: .relaxed).newValue
        let exchange = HTTPExchange(client: self, number: number)
        if !post(.start(request, HTTPExchangeReference(exchange: exchange, number: number))) {
            exchange.update { $0.end = .failure(HTTPError(.closed, "the HTTP client is closed")) }
        }
        return exchange
    }

    /// Sends a request and reads the whole answer.
    /// - Parameter limit: bytes of the body, at most.
    /// - Throws: `HTTPError`; `CancellationError` when the task is cancelled.
    package nonisolated func fetch(
        _ request: HTTPRequest, limit: Int = 1 << 20
    ) async throws -> (status: Int, body: [UInt8]) {
        let exchange = start(request)
        let status = try await exchange.status()
        return (status, try await exchange.body(limit: limit))
    }

    /// Ends all transfers.
    package func close() { shutDown() }

    @discardableResult
    nonisolated func post(_ request: Request) -> Bool {
        guard mailbox.post(request) else { return false }
        executor.wake()
        return true
    }

    private func shutDown() {
        let error = HTTPError(.closed, "the HTTP client is closed")
        for case .start(_, let reference) in mailbox.close() { reference.exchange?.update { $0.end = .failure(error) } }
        for number in transfers.keys { end(number, .failure(error)) }
        if let multi { curl_multi_cleanup(multi) }
        multi = nil
    }
}

// MARK: - The thread's turn

extension HTTPClient: PollSource {
    package nonisolated func service() { assumeIsolated { $0.turn() } }
    package nonisolated var hasWork: Bool { !mailbox.isEmpty }

    package nonisolated func wait(wake: Int32) {
        assumeIsolated { client in
            guard let multi = client.multi, !client.transfers.isEmpty else {
                pollDescriptor(-1, events: 0, wake: wake, timeoutMilliseconds: -1)
                return
            }
            var extra = curl_waitfd(fd: wake, events: Int16(CURL_WAIT_POLLIN), revents: 0)
            // curl shortens the wait to its own next timer.
            curl_multi_poll(multi, &extra, 1, 1000, nil)
        }
    }

    private func turn() {
        for request in mailbox.takeAll() { perform(request) }
        guard let multi, !transfers.isEmpty else { return }
        var running: Int32 = 0
        curl_multi_perform(multi, &running)
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let transfer = transfer(of: message.pointee.easy_handle) else {
                continue
            }
            end(transfer.number, transfer.transfer.outcome(message.pointee.data.result))
        }
    }

    private func perform(_ request: Request) {
        switch request {
        case .start(let request, let reference):
            guard let exchange = reference.exchange, exchange.state.withLock({ $0.end == nil }) else { return }
            do throws(HTTPError) { try begin(request, exchange) } catch {
                exchange.update { $0.end = .failure(error) }
            }
        case .resume(let number):
            if let easy = transfers[number]?.easy { curl_easy_pause(easy, CURLPAUSE_CONT) }
        case .abandon(let number):
            end(number, .failure(HTTPError(.closed, "the request was given up")))
        }
    }

    private func begin(_ request: HTTPRequest, _ exchange: HTTPExchange) throws(HTTPError) {
        if multi == nil { multi = curl_multi_init() }
        guard let multi else { throw HTTPError(.invalid, "no memory for HTTP") }
        let transfer = try HTTPTransfer(request, exchange)
        guard curl_multi_add_handle(multi, transfer.easy) == CURLM_OK else {
            throw HTTPError(.invalid, "libcurl takes no further request")
        }
        transfers[exchange.number] = transfer
    }

    /// Takes the transfer out, which closes its connection, and tells the reader.
    private func end(_ number: UInt64, _ outcome: Result<Void, HTTPError>) {
        guard let transfer = transfers.removeValue(forKey: number) else { return }
        curl_multi_remove_handle(multi, transfer.easy)
        let exchange = transfer.exchange
        exchange?.update { if $0.end == nil { $0.end = outcome } }
    }

    private func transfer(of easy: UnsafeMutableRawPointer?) -> (number: UInt64, transfer: HTTPTransfer)? {
        var context: UnsafeMutableRawPointer?
        guard let easy, ccurl_get_pointer(easy, CURLINFO_PRIVATE, &context) == CURLE_OK, let context else { return nil }
        let transfer = Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue()
        guard let number = transfers.first(where: { $0.value === transfer })?.key else { return nil }
        return (number, transfer)
    }
}

/// What must happen once, before any thread: libraries with global state are set up, SIGPIPE is ignored.
package enum ProcessSetup {
    package static func run() {
        // Where the caller has closed one of the three, a socket would take its number, and lines would go into it.
        for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) < 0 {
            _ = open("/dev/null", descriptor == 0 ? O_RDONLY : O_WRONLY)
        }
        // hiredis and librabbitmq write to sockets that the peer may have closed.
        signal(SIGPIPE, SIG_IGN)
        curl_global_init(Int(CURL_GLOBAL_ALL))
    }
}
