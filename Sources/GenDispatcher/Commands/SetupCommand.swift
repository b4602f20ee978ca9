import GenShared

/// `gendispatcher setup`: declares exchanges and queues.
struct SetupCommand: DispatcherCommand {
    static let specification = CommandSpecification(
        "setup", summary: "Declares the exchanges and queues in RabbitMQ. Repeating it changes nothing.",
        options: [
            .init("pool", "NAME", "a pool to make queues for (default: text and image)", isRepeatable: true), .config,
        ],
        examples: ["gendispatcher setup", "gendispatcher setup --pool text --pool large"])

    private let pools: [String]

    init(_ arguments: Arguments, limits: JobLimits = JobLimits()) throws {
        let named = arguments.all("pool")
        for name in named where !Job.isPoolName(name) {
            throw UsageError("--pool: a pool's name has 1 to 32 letters, digits, _ or -")
        }
        pools = named.isEmpty ? ["text", "image"] : named
    }

    func run(_ context: CommandContext) async throws -> ExitCode {
        let publisher = AMQPPublisher(url: context.servers.amqp, name: "gendispatcher setup")
        let connection = try await publisher.usable()
        do throws(AMQPError) {
            _ = try await connection.declare(Topology(pools: pools), onlyMissing: false)
        } catch {
            guard error.code == .refused(406) else { throw error }
            throw AMQPError(
                error.code,
                "\(error.message); a queue of that name exists with other arguments, which RabbitMQ never changes: "
                    + "empty it, delete it with `rabbitmqctl delete_queue NAME`, and run setup again")
        }
        let version = await connection.serverVersion
        await publisher.close()
        Terminal.write("RabbitMQ \(version): exchanges and queues for \(pools.joined(separator: ", ")) are in place.\n")
        Terminal.write(
            """
            To bound how many jobs may wait, set a policy; a full queue then refuses jobs (exit code 5):
              rabbitmqctl set_policy gen-jobs '^gen\\.jobs\\.v1\\.' '{"max-length":100000}' --apply-to queues

            """)
        return .done
    }
}
