// SPDX-License-Identifier: GPL-3.0-or-later
// What jenkins-client makes of a CI server: a line for each step.

import com.offbytwo.jenkins.JenkinsServer;
import com.offbytwo.jenkins.model.Artifact;
import com.offbytwo.jenkins.model.Build;
import com.offbytwo.jenkins.model.BuildWithDetails;
import com.offbytwo.jenkins.model.FolderJob;
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
            BuildWithDetails build = ended(server, job.build(Map.of("TARGET", "staging"), true));
            return build.getResult() + " " + new TreeMap<>(build.getParameters());
        });
        step("log", () -> {
            Build build = server.getJob("secret-parameters").getLastBuild();
            return build.details().getConsoleOutputText().contains("Finished: SUCCESS");
        });
        step("folder", () -> {
            server.createFolder("folder-by-java", true);
            FolderJob folder = server.getFolderJob(server.getJob("folder-by-java")).get();
            server.createJob(folder, "inner", CONFIG, true);
            return String.join(" ", server.getJobs(folder).keySet());
        });
        step("artifact", () -> {
            JobWithDetails job = server.getJob(server.getFolderJob(server.getJob("delivery")).get(),
                "package");
            BuildWithDetails build = ended(server, job.build(Map.of("VERSION", "2"), true));
            Artifact first = build.getArtifacts().get(0);
            return first.getRelativePath() + " "
                + new String(build.downloadArtifact(first).readAllBytes());
        });
        step("stop", () -> {
            QueueReference reference = server.getJob("slow").build(true);
            started(server, reference).Stop(true);
            return ended(server, reference).getResult();
        });
        step("script", () -> server.runScript("println(1)", true).trim());
        step("plugins", () -> server.getPluginManager().getPlugins().stream()
            .anyMatch(each -> each.getShortName().equals("git")));
        server.close();
    }

    private static Build started(JenkinsServer server, QueueReference reference) throws Exception {
        QueueItem item = server.getQueueItem(reference);
        while (item.getExecutable() == null) {
            Thread.sleep(50);
            item = server.getQueueItem(reference);
        }
        return server.getBuild(item);
    }

    private static BuildWithDetails ended(JenkinsServer server, QueueReference reference)
            throws Exception {
        Build build = started(server, reference);
        while (build.details().isBuilding()) {
            Thread.sleep(50);
        }
        return build.details();
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
