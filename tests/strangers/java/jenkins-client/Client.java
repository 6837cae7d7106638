// SPDX-License-Identifier: GPL-3.0-or-later
// What jenkins-client makes of a CI server: a line for each step.

import com.offbytwo.jenkins.JenkinsServer;
import com.offbytwo.jenkins.model.Build;
import com.offbytwo.jenkins.model.BuildWithDetails;
import com.offbytwo.jenkins.model.JobWithDetails;
import com.offbytwo.jenkins.model.QueueItem;
import com.offbytwo.jenkins.model.QueueReference;
import java.net.URI;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;

public final class Client {
    private static final String CONFIG =
        "<?xml version='1.0' encoding='UTF-8'?><project><description>made</description>"
        + "<keepDependencies>false</keepDependencies><properties/><disabled>false</disabled>"
        + "</project>";

    public static void main(String[] given) throws Exception {
        JenkinsServer server = new JenkinsServer(new URI(given[0]), given[1], given[2]);
        step("running", server::isRunning);
        step("version", () -> server.getVersion().getLiteralVersion());
        step("jobs", () -> server.getJobs().keySet().stream()
            .filter(each -> each.startsWith("no-") || each.equals("delivery")).sorted()
            .collect(Collectors.joining(" ")));
        step("create", () -> {
            server.createJob("made by java", CONFIG, true);
            return server.getJob("made by java").getDescription();
        });
        step("config", () -> server.getJobXml("made by java").contains("made"));
        step("change", () -> {
            server.updateJob("made by java", CONFIG.replace("made", "new"), true);
            return server.getJob("made by java").getDescription();
        });
        step("disable", () -> {
            server.disableJob("made by java", true);
            return server.getJob("made by java").isBuildable();
        });
        step("enable", () -> {
            server.enableJob("made by java", true);
            return server.getJob("made by java").isBuildable();
        });
        step("delete", () -> {
            server.deleteJob("made by java", true);
            return server.getJob("made by java");
        });
        step("build", () -> {
            JobWithDetails job = server.getJob("secret-parameters");
            QueueReference reference = job.build(Map.of("TARGET", "staging"), true);
            QueueItem item = server.getQueueItem(reference);
            while (item.getExecutable() == null) {
                Thread.sleep(50);
                item = server.getQueueItem(reference);
            }
            BuildWithDetails build = server.getBuild(item).details();
            while (build.isBuilding()) {
                Thread.sleep(50);
                build = server.getBuild(item).details();
            }
            return build.getResult() + " " + new TreeMap<>(build.getParameters());
        });
        step("log", () -> {
            Build build = server.getJob("secret-parameters").getLastBuild();
            return build.details().getConsoleOutputText().contains("Finished: SUCCESS");
        });
        step("script", () -> server.runScript("println(1)", true).trim());
        step("plugins", () -> server.getPluginManager().getPlugins().stream()
            .anyMatch(each -> each.getShortName().equals("git")));
        server.close();
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
