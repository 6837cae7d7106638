// SPDX-License-Identifier: GPL-3.0-or-later
// What jenkins-rest makes of a CI server: a line for each step.

import com.cdancy.jenkins.rest.JenkinsClient;
import com.cdancy.jenkins.rest.domain.common.RequestStatus;
import com.cdancy.jenkins.rest.domain.job.BuildInfo;
import com.cdancy.jenkins.rest.domain.queue.QueueItem;
import com.cdancy.jenkins.rest.features.JobsApi;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;

public final class Client {
    private static final String CONFIG =
        "<?xml version='1.0' encoding='UTF-8'?><project><description>made</description>"
        + "<keepDependencies>false</keepDependencies><properties/><disabled>false</disabled>"
        + "</project>";

    public static void main(String[] given) throws Exception {
        JenkinsClient client = JenkinsClient.builder()
            .endPoint(given[0]).credentials(given[1] + ":" + given[2]).build();
        JobsApi jobs = client.api().jobsApi();
        step("version", () -> client.api().systemApi().systemInfo().jenkinsVersion());
        step("crumb", () -> client.api().crumbIssuerApi().crumb().value() != null);
        step("jobs", () -> jobs.jobList("").jobs().stream().map(each -> each.name())
            .filter(each -> each.startsWith("no-") || each.equals("delivery")).sorted()
            .collect(Collectors.joining(" ")));
        step("create", () -> jobs.create(null, "made-by-java", CONFIG).value());
        step("create again", () -> jobs.create(null, "made-by-java", CONFIG).value());
        step("config", () -> jobs.config(null, "made-by-java").contains("made"));
        step("change", () -> jobs.config(null, "made-by-java", CONFIG.replace("made", "new")));
        step("disable", () -> jobs.disable(null, "made-by-java")
            + " " + jobs.jobInfo(null, "made-by-java").buildable());
        step("enable", () -> jobs.enable(null, "made-by-java")
            + " " + jobs.jobInfo(null, "made-by-java").buildable());
        step("delete", () -> jobs.delete(null, "made-by-java").value());
        step("missing", () -> jobs.jobInfo(null, "made-by-java"));
        step("build", () -> {
            Map<String, List<String>> parameters =
                Map.of("VERSION", List.of("3.1"), "CHANNEL", List.of("beta"));
            int item = jobs.buildWithParameters("delivery", "toolchain", parameters).value();
            BuildInfo build = followed(client, "delivery", "toolchain", item);
            return build.result() + " " + build.actions().stream()
                .flatMap(each -> each.parameters().stream())
                .map(each -> each.name() + "=" + each.value()).sorted()
                .collect(Collectors.joining(" "));
        });
        step("last build", () -> jobs.lastBuildNumber("delivery", "toolchain"));
        step("log", () -> jobs.progressiveText("delivery", "toolchain", 0).text()
            .contains("Building version 3.1"));
        step("stop", () -> {
            int item = jobs.build(null, "slow").value();
            int number = started(client, item).executable().number();
            jobs.stop(null, "slow", number);
            return ended(client, null, "slow", number).result();
        });
        step("term", () -> {
            int number = started(client, jobs.build(null, "slow").value()).executable().number();
            RequestStatus status = jobs.term(null, "slow", number);
            return status.value() + " " + ended(client, null, "slow", number).result();
        });
        step("kill", () -> {
            int number = started(client, jobs.build(null, "stubborn").value()).executable().number();
            RequestStatus status = jobs.kill(null, "stubborn", number);
            return status.value() + " " + ended(client, null, "stubborn", number).result();
        });
        step("term elsewhere", () -> {
            int item = jobs.build(null, "slow-freestyle").value();
            int number = started(client, item).executable().number();
            boolean done = jobs.term(null, "slow-freestyle", number).value();
            return done + " " + jobs.stop(null, "slow-freestyle", number).value();
        });
        step("queue", () -> {
            int item = jobs.build(null, "offline").value();
            String waiting = client.api().queueApi().queue().stream()
                .map(each -> each.task().name()).collect(Collectors.joining(" "));
            boolean done = client.api().queueApi().cancel(item).value();
            return waiting + " " + done + " " + client.api().queueApi().queueItem(item).cancelled();
        });
        step("artifact", () -> {
            int item = jobs.buildWithParameters("delivery", "package", null).value();
            BuildInfo build = followed(client, "delivery", "package", item);
            String path = build.artifacts().get(0).relativePath();
            return path + " " + new String(
                jobs.artifact("delivery", "package", build.number(), path).readAllBytes());
        });
        step("install", () -> client.api().pluginManagerApi()
            .installNecessaryPlugins("timestamper@1.28").value());
        step("plugins", () -> client.api().pluginManagerApi().plugins(3, null).plugins().stream()
            .anyMatch(each -> each.shortName().equals("git")));
        client.close();
    }

    private static QueueItem started(JenkinsClient client, int number) throws Exception {
        QueueItem item = client.api().queueApi().queueItem(number);
        while (item.executable() == null) {
            Thread.sleep(50);
            item = client.api().queueApi().queueItem(number);
        }
        return item;
    }

    private static BuildInfo followed(JenkinsClient client, String folder, String job, int item)
            throws Exception {
        int number = started(client, item).executable().number();
        return ended(client, folder, job, number);
    }

    private static BuildInfo ended(JenkinsClient client, String folder, String job, int number)
            throws Exception {
        BuildInfo build = client.api().jobsApi().buildInfo(folder, job, number);
        while (build.building()) {
            Thread.sleep(50);
            build = client.api().jobsApi().buildInfo(folder, job, number);
        }
        return build;
    }

    private static void step(String name, Callable<Object> what) {
        String value;
        try {
            value = String.valueOf(what.call());
        } catch (Exception error) {
            value = "failed: " + error;
        }
        System.out.println(name + "\t" + value.replace("\n", " "));
    }
}
